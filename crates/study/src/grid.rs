//! The grid: keys of the file and their values.

use crate::{Cell, StudyError};

/// Parameters of a sweep; its points are all combinations of their values, the last parameter changing first. Parameters
/// that vary together have one value each at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    parameters: Vec<Parameter>,
    /// For each parameter the index of the first that it varies with; its own if none.
    leaders: Vec<usize>,
}

/// One key of the file with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Path of the key: "options.alpha", "session.a.demand".
    pub path: String,
    /// Its values as TOML text, quotes around strings optional.
    pub values: Vec<String>,
}

impl Grid {
    /// Adds `PATH=V1,V2,...`: commas within quotes and brackets are part of a value.
    pub fn add_text(&mut self, text: &str) -> Result<(), StudyError> {
        let wrong = || {
            let shown: String = text.chars().take(60).collect();
            StudyError::grid(
                format!("--set: \"{}\" has no values", shown.escape_debug()),
                "expected PATH=V1,V2,..., such as options.alpha=0.05,0.1",
            )
        };
        let (path, values) = text.split_once('=').ok_or_else(wrong)?;
        let values = split(values);
        if path.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        self.add(Parameter { path: path.trim().to_owned(), values })
    }

    /// Adds the parameters of a TOML file: `"options.alpha" = [0.05, 0.1]`, or in tables.
    pub fn add_file(&mut self, file: &str, text: &str) -> Result<(), StudyError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            StudyError::grid(
                format!("{file}:{line}: not TOML: {}", error.message()),
                "a line is \"options.alpha\" = [0.05, 0.1]",
            )
        })?;
        let before = self.parameters.len();
        self.add_table(file, "", &table)?;
        if self.parameters.len() == before {
            return Err(StudyError::grid(
                format!("{file}: the grid is empty"),
                "a line is \"options.alpha\" = [0.05, 0.1]",
            ));
        }
        Ok(())
    }

    fn add_table(&mut self, file: &str, below: &str, table: &toml::Table) -> Result<(), StudyError> {
        for (key, value) in table {
            let path = if below.is_empty() { key.clone() } else { format!("{below}.{}", quoted(key)) };
            match value {
                toml::Value::Array(values) => {
                    let values = values.iter().map(written).collect();
                    self.add(Parameter { path, values })?;
                }
                toml::Value::Table(inner) => self.add_table(file, &path, inner)?,
                other => {
                    let other = written(other);
                    return Err(StudyError::grid(
                        format!("{file}: {path} = {other} is not a list of values"),
                        format!("write {path} = [{other}]"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Adds one parameter, or several that vary together: paths between commas, and a list of their values each.
    pub fn add(&mut self, parameter: Parameter) -> Result<(), StudyError> {
        let paths: Vec<&str> = parameter.path.split(',').map(str::trim).collect();
        let leader = self.parameters.len();
        if paths.len() == 1 {
            return self.add_one(parameter, leader, true);
        }
        Self::check_values(&parameter)?;
        let mut columns = vec![Vec::with_capacity(parameter.values.len()); paths.len()];
        for value in &parameter.values {
            let list = format!("values = {value}").parse::<toml::Table>().ok();
            let list = list.as_ref().and_then(|table| table.get("values")?.as_array());
            let Some(list) = list.filter(|list| list.len() == paths.len()) else {
                let what = format!("{}: {value} is not a list of {} values", parameter.path, paths.len());
                return Err(StudyError::grid(what, "write a list at each: a.b,c.d=[1,2],[3,4]"));
            };
            columns.iter_mut().zip(list).for_each(|(column, value)| column.push(written(value)));
        }
        for (path, values) in paths.into_iter().zip(columns) {
            self.add_one(Parameter { path: path.to_owned(), values }, leader, false)?;
        }
        Ok(())
    }

    fn add_one(&mut self, parameter: Parameter, leader: usize, is_alone: bool) -> Result<(), StudyError> {
        let path = &parameter.path;
        if parameter.values.is_empty() {
            let hint = format!("give it values: {path}=V1,V2");
            return Err(StudyError::grid(format!("{path} has no values: the grid is empty"), hint));
        }
        let instead = match path.as_str() {
            "seed" | "runs" => Some("use --seeds to set the number of runs per point"),
            "variant" => Some("all variants of the file run; use --variant to choose one"),
            "title" | "cites" | "name" => Some("it does not affect results"),
            _ => None,
        };
        if let Some(instead) = instead {
            return Err(StudyError::grid(format!("{path} is not a parameter of a sweep"), instead));
        }
        if self.parameters.iter().any(|known| known.path == *path) {
            return Err(StudyError::grid(format!("{path} is given twice"), "give all its values in one --set"));
        }
        if is_alone {
            Self::check_values(&parameter)?;
        }
        self.parameters.push(parameter);
        self.leaders.push(leader);
        Ok(())
    }

    fn check_values(parameter: &Parameter) -> Result<(), StudyError> {
        let cells: Vec<Cell> = parameter.values.iter().map(|value| Cell::of_toml(value)).collect();
        if let Some(twice) = (1..cells.len()).find(|at| cells[..*at].contains(&cells[*at])) {
            let what = format!("{} has the value {} twice", parameter.path, parameter.values[twice]);
            return Err(StudyError::grid(what, "give each value once; every value runs with every seed"));
        }
        Ok(())
    }

    /// The parameters, in the order in which they were added.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Number of points; one for a grid without parameters. `None` if it overflows.
    pub fn points(&self) -> Option<usize> {
        self.free().try_fold(1_usize, |points, at| points.checked_mul(self.parameters[at].values.len()))
    }

    /// The parameters that vary by themselves, or are the first of those that vary together.
    fn free(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.parameters.len()).filter(|at| self.leaders[*at] == *at)
    }

    /// The values of one point, path by path.
    pub fn point(&self, point: usize) -> Vec<(String, String)> {
        let mut rest = point;
        let mut chosen = vec![0; self.parameters.len()];
        for at in self.free().rev() {
            let values = self.parameters[at].values.len();
            chosen[at] = rest % values;
            rest /= values;
        }
        let value = |(parameter, leader): (&Parameter, &usize)| {
            (parameter.path.clone(), parameter.values[chosen[*leader]].clone())
        };
        self.parameters.iter().zip(&self.leaders).map(value).collect()
    }
}

/// A key as a part of a path.
fn quoted(key: &str) -> String {
    if key.contains('.') && !key.contains('{') { format!("\"{key}\"") } else { key.to_owned() }
}

/// A value as TOML text.
fn written(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => {
            let mut quoted = String::from('"');
            for c in text.chars() {
                match c {
                    '"' | '\\' => quoted.extend(['\\', c]),
                    c if c.is_control() => quoted.extend(format!("\\u{:04X}", u32::from(c)).chars()),
                    c => quoted.push(c),
                }
            }
            quoted + "\""
        }
        toml::Value::Integer(whole) => whole.to_string(),
        // Debug keeps the decimal point that makes a TOML number a float.
        toml::Value::Float(number) => format!("{number:?}"),
        toml::Value::Boolean(flag) => flag.to_string(),
        toml::Value::Datetime(date) => date.to_string(),
        toml::Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        toml::Value::Table(table) => {
            let entry = |(key, value): (&String, &toml::Value)| {
                format!("{} = {}", written(&toml::Value::String(key.clone())), written(value))
            };
            format!("{{{}}}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// The values between commas, except those within quotes and brackets.
fn split(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut quote, mut depth) = (None, 0_u32);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(value) = values.last_mut() {
            value.push(c);
        }
    }
    values.into_iter().map(|value| value.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(texts: &[&str]) -> Result<Grid, StudyError> {
        let mut grid = Grid::default();
        texts.iter().try_for_each(|text| grid.add_text(text)).map(|()| grid)
    }

    #[test]
    fn add_text__splits_only_between_values() {
        let grid = grid(&["a.b=1, 2 ,\"x,y\",[[\"0 s\", 1], [2]]"]).unwrap();
        assert_eq!(grid.parameters()[0].values, ["1", "2", "\"x,y\"", "[[\"0 s\", 1], [2]]"]);
    }

    #[test]
    fn add_text__rejects_invalid_grids() {
        for (texts, word) in [
            (&["options.alpha"][..], "has no values"),
            (&["=1"], "has no values"),
            (&["a="], "has no values"),
            (&["a=1,,2"], "has no values"),
            (&["a=1", "a=2"], "twice"),
            (&["a=0.1,0.10"], "twice"),
            (&["seed=1,2"], "is not a parameter of a sweep"),
        ] {
            let error = grid(texts).unwrap_err();
            assert!(error.to_string().contains(word) && error.hint().is_some(), "{error}");
        }
    }

    #[test]
    fn point__counts_the_last_parameter_first() {
        let grid = grid(&["a=1,2", "b=x,y,z"]).unwrap();
        assert_eq!(grid.points(), Some(6));
        let words = |point| grid.point(point).into_iter().map(|(_, value)| value).collect::<String>();
        assert_eq!((0..6).map(words).collect::<Vec<_>>(), ["1x", "1y", "1z", "2x", "2y", "2z"]);
        assert_eq!(Grid::default().points(), Some(1));
        assert!(Grid::default().point(0).is_empty());
    }

    #[test]
    fn point__of_parameters_that_vary_together() {
        let grid = |texts: &[&str]| grid(texts).unwrap();
        let grid = grid(&["a=1,2", "b.c, d=[\"x\", 1],[\"x\", 2]"]);
        assert_eq!(grid.points(), Some(4));
        let words =
            |point| grid.point(point).into_iter().map(|(path, value)| path + &value).collect::<Vec<_>>().join(" ");
        let expected = ["a1 b.c\"x\" d1", "a1 b.c\"x\" d2", "a2 b.c\"x\" d1", "a2 b.c\"x\" d2"];
        assert_eq!((0..4).map(words).collect::<Vec<_>>(), expected);
        for (text, word) in
            [("a,b=1,2", "is not a list of 2 values"), ("a,b=[1,2],[1,2]", "twice"), ("a,a=[1,2]", "given twice")]
        {
            let error = Grid::default().add_text(text).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn add_file__takes_paths_and_tables() {
        let mut grid = Grid::default();
        grid.add_file("g.toml", "\"options.alpha\" = [0.05, 0.1]\n[session.a]\ndemand = [\"1 Mb/s\"]\n").unwrap();
        let paths: Vec<_> = grid.parameters().iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["options.alpha", "session.a.demand"]);
        assert_eq!(grid.parameters()[1].values, ["\"1 Mb/s\""]);
        for (text, word) in [
            ("", "empty"),
            ("a = []", "no values"),
            ("a = 3", "is not a list of values"),
            ("a = [1", "g.toml:1: not TOML"),
            ("\n\na = ]", "g.toml:3: not TOML"),
        ] {
            let error = Grid::default().add_file("g.toml", text).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
