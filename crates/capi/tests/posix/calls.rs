//! What TCP has no like of: tickets, opening, and what cuts.
