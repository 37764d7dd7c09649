//! The sheet: its SVG header, title, footer, and the area for the plot.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::palette::{FAINT, INK, PAPER};
use super::request::{Caption, PictureError};

/// Drawing units per pixel. The library rounds to whole units; finer ones keep slopes smooth.
pub(super) const UNIT: i32 = 4;

/// Typefaces, of which most readers have one.
const FAMILY: &str = "Helvetica Neue, Helvetica, Arial, DejaVu Sans, sans-serif";

/// Width of a letter in hundredths of the font size.
const LETTER: i32 = 58;

/// A part of the sheet.
pub(super) type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A sheet to draw on.
pub(super) struct Canvas<'a> {
    width: i32,
    height: i32,
    caption: &'a Caption,
}

/// The parts of a sheet outside title and footer.
pub(super) struct PlotArea<'a> {
    /// Area of the plot.
    pub(super) plot: Area<'a>,
}

/// A rectangle of the sheet, in pixels.
pub(super) struct Area<'a> {
    /// The library's drawing area.
    pub(super) sheet: Sheet<'a>,
}

impl<'c> Canvas<'c> {
    /// A sheet with this size in pixels.
    pub(super) fn new(width: i32, height: i32, caption: &'c Caption) -> Self {
        Self { width, height, caption }
    }

    /// Draws title and footer, lets `body` draw the rest, and returns the SVG.
    pub(super) fn draw(
        &self,
        body: impl FnOnce(&PlotArea<'_>) -> Result<(), PictureError>,
    ) -> Result<String, PictureError> {
        let (width, height) = (self.width, self.height);
        let mut svg = String::new();
        {
            let size = ((width * UNIT).cast_unsigned(), (height * UNIT).cast_unsigned());
            let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            sheet.fill(&PAPER).map_err(drawing)?;
            let whole = Area { sheet };
            // A long title is set smaller before it is truncated; bold letters are wider by a fifth.
            let room = (width - 48) * 5 / 6;
            let size = (14..19).rev().find(|size| text_width(&self.caption.title, *size) <= room);
            let size = if text_width(&self.caption.title, 19) <= room { 19 } else { size.unwrap_or(14) };
            whole.text(24, 28, &fit(&self.caption.title, room, size), font(size, INK).bold())?;
            whole.text(24, 50, &fit(&self.caption.subtitle, width - 48, 13), font(13, FAINT))?;
            if !self.caption.cites.is_empty() {
                let at_right = font(11, FAINT).right();
                let cites = format!("after {}", self.caption.cites);
                whole.text(width - 24, height - 16, &fit(&cites, width / 2, 11), at_right)?;
            }
            let frame = PlotArea { plot: whole.margins(66, 30, 24, 24) };
            body(&frame)?;
            whole.sheet.present().map_err(drawing)?;
        }
        Ok(self.finish(&svg))
    }

    /// Sets the sheet's size in pixels, and a title for screen readers.
    fn finish(&self, svg: &str) -> String {
        let (width, height) = (self.width, self.height);
        let body = svg.find('>').map_or(svg, |end| &svg[end + 1..]);
        let title = escape(&format!("{} ({})", self.caption.title, self.caption.subtitle));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
             role=\"img\">\n<title>{title}</title>{body}",
            width * UNIT,
            height * UNIT,
        )
    }
}

impl<'a> Area<'a> {
    /// Width and height in pixels.
    pub(super) fn size(&self) -> (i32, i32) {
        let (width, height) = self.sheet.dim_in_pixel();
        (width.cast_signed() / UNIT, height.cast_signed() / UNIT)
    }

    /// The area within margins.
    pub(super) fn margins(&self, top: i32, bottom: i32, left: i32, right: i32) -> Area<'a> {
        Area { sheet: self.sheet.margin(top * UNIT, bottom * UNIT, left * UNIT, right * UNIT) }
    }

    /// The upper and the lower part.
    pub(super) fn split_rows(&self, upper_share: f64) -> (Area<'a>, Area<'a>) {
        let (_, height) = self.sheet.dim_in_pixel();
        let (upper, lower) = self.sheet.split_vertically((f64::from(height) * upper_share).round() as i32);
        (Area { sheet: upper }, Area { sheet: lower })
    }

    /// Equal parts, row by row.
    pub(super) fn grid(&self, rows: usize, columns: usize) -> Vec<Area<'a>> {
        self.sheet.split_evenly((rows, columns)).into_iter().map(|sheet| Area { sheet }).collect()
    }

    /// Writes a line of text, its middle at height `y`.
    pub(super) fn text(&self, x: i32, y: i32, text: &str, font: Font) -> Result<(), PictureError> {
        self.text_at(f64::from(x), f64::from(y), text, font)
    }

    /// Writes a line of text at a fractional position.
    pub(super) fn text_at(&self, x: f64, y: f64, text: &str, font: Font) -> Result<(), PictureError> {
        self.sheet.draw_text(text, &font.style(), units(x, y)).map_err(drawing)
    }

    /// Draws a line of `width` pixels through points in pixels.
    pub(super) fn line(&self, points: &[(f64, f64)], colour: RGBAColor, width: f64) -> Result<(), PictureError> {
        let points: Vec<_> = points.iter().map(|(x, y)| units(*x, *y)).collect();
        self.sheet.draw(&PathElement::new(points, stroke(colour, width))).map_err(drawing)
    }
}

/// A line's colour and width in pixels.
pub(super) fn stroke(colour: RGBAColor, width: f64) -> ShapeStyle {
    ShapeStyle { color: colour, filled: false, stroke_width: (width * f64::from(UNIT)).round() as u32 }
}

/// Pixels in drawing units.
pub(super) fn units(x: f64, y: f64) -> (i32, i32) {
    ((x * f64::from(UNIT)).round() as i32, (y * f64::from(UNIT)).round() as i32)
}

/// A font size in pixels.
#[derive(Clone, Copy)]
pub(super) struct Font {
    size: i32,
    colour: RGBColor,
    bold: bool,
    anchor: HPos,
}

/// Plain text, to the right of its position.
pub(super) fn font(size: i32, colour: RGBColor) -> Font {
    Font { size, colour, bold: false, anchor: HPos::Left }
}

impl Font {
    /// The bold font.
    pub(super) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The font with text to the left of its position.
    pub(super) fn right(self) -> Self {
        Self { anchor: HPos::Right, ..self }
    }

    /// The font with text centred at its position.
    pub(super) fn centred(self) -> Self {
        Self { anchor: HPos::Center, ..self }
    }

    /// The library's description of it.
    pub(super) fn style(self) -> TextStyle<'static> {
        // The library divides sizes by 1.24.
        let size = f64::from(self.size * UNIT) * 1.24;
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        TextStyle {
            font: (FAMILY, size, style).into_font(),
            color: self.colour.to_backend_color(),
            pos: Pos::new(self.anchor, VPos::Center),
        }
    }
}

/// The text, truncated with dots if it is wider than `width` pixels.
pub(super) fn fit(text: &str, width: i32, size: i32) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let most = usize::try_from(width * 100 / (size * LETTER)).unwrap_or(0).max(4);
    let kept: String = text.chars().take(most - 1).collect();
    format!("{}\u{2026}", kept.trim_end())
}

/// Approximate width of a text in pixels. SVG has no measurement; the widest of the typefaces counts.
pub(super) fn text_width(text: &str, size: i32) -> i32 {
    let letters = i32::try_from(text.chars().count()).unwrap_or(1 << 16).min(1 << 16);
    letters * size * LETTER / 100
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Converts an error of the library.
pub(super) fn drawing(error: impl std::fmt::Display) -> PictureError {
    PictureError::Drawing(error.to_string())
}
