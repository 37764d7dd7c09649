//! The rule of a queue.

use super::mistake::ReadResult;
use super::reader::Field;
use crate::Discipline;

const DISCIPLINES: [(&str, Discipline); 23] = [
    ("drop-tail", Discipline::DropTail),
    ("red", Discipline::Red),
    ("ecn-step", Discipline::EcnStep),
    ("codel", Discipline::Codel),
    ("fq-codel", Discipline::FqCodel),
    ("fq", Discipline::Fq),
    ("pie", Discipline::Pie),
    ("dualpi2", Discipline::DualPi2),
    ("rem", Discipline::Rem),
    ("avq", Discipline::Avq),
    ("priority", Discipline::Priority),
    ("xcp", Discipline::Xcp),
    ("ixcp", Discipline::Ixcp),
    ("pxcp", Discipline::Pxcp),
    ("vcp", Discipline::Vcp),
    ("aecp", Discipline::Aecp),
    ("rcp", Discipline::Rcp),
    ("maxnet", Discipline::Maxnet),
    ("mkc", Discipline::Mkc),
    ("emkc", Discipline::Emkc),
    ("jetmax-share", Discipline::JetmaxShare),
    ("jetmax", Discipline::Jetmax),
    ("gtp", Discipline::Gtp),
];

/// A queue's rule by its name.
pub(crate) fn discipline(field: Field<'_>) -> ReadResult<Discipline> {
    field.word(&DISCIPLINES)
}
