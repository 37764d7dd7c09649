//! What is true of a whole network at once: the max-min fair optimum and how far an allocation is from it.
