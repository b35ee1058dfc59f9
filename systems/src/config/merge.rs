//! Changes to a configuration, by key.

use super::{ConfigError, nearest};

/// Parses `path.to.key=value`. The value is TOML; a bare word is taken as a string.
///
/// # Errors
/// There is no `=`, or the path is empty.
pub fn parse_assignment(text: &str) -> Result<toml::Table, ConfigError> {
    let (path, value) = text
        .split_once('=')
        .ok_or_else(|| ConfigError::Syntax(format!("`{text}` is no assignment; write path.to.key=value")))?;
    let value = value.trim();
    let parsed = match format!("value = {value}").parse::<toml::Table>() {
        Ok(mut table) => table.remove("value"),
        Err(_) if !value.is_empty() && value.chars().all(|c| c.is_alphanumeric() || "_-./:".contains(c)) => {
            Some(toml::Value::String(value.to_owned()))
        }
        Err(error) => {
            return Err(ConfigError::Syntax(format!("`{text}`: the value is {}", error.message())));
        }
    };
    let mut keys: Vec<&str> = path.split('.').map(str::trim).collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(ConfigError::Syntax(format!("`{text}`: the path has an empty part")));
    }
    keys.reverse();
    let mut value = parsed.ok_or_else(|| ConfigError::Syntax(format!("`{text}` has no value")))?;
    let mut table = toml::Table::new();
    for (i, key) in keys.iter().enumerate() {
        table = toml::Table::from_iter([((*key).to_owned(), value)]);
        if i + 1 < keys.len() {
            value = toml::Value::Table(table);
            table = toml::Table::new();
        } else {
            return Ok(table);
        }
    }
    Ok(table)
}

/// Writes `changes` into `base`, whose keys are all the keys there are.
///
/// A table is merged key by key, except that a table with a `kind`, or one that takes the place of something that is
/// no table, replaces what was there; its type is checked when it is read.
///
/// # Errors
/// The first key in `changes` that `base` does not have.
pub fn merge(path: &str, base: &mut toml::Table, changes: &toml::Table) -> Result<(), ConfigError> {
    for (key, change) in changes {
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let keys: Vec<String> = base.keys().cloned().collect();
        let Some(value) = base.get_mut(key) else {
            return Err(ConfigError::UnknownKey {
                nearest: nearest(key, keys.iter().map(String::as_str)),
                available: keys.join(", "),
                path: here,
            });
        };
        match (&mut *value, change) {
            (toml::Value::Table(inner), toml::Value::Table(changes))
                if !changes.contains_key("kind") && !is_pattern_map(inner) =>
            {
                merge(&here, inner, changes)?;
            }
            (toml::Value::Table(inner), toml::Value::Table(changes)) if is_pattern_map(inner) => {
                inner.clear();
                inner.extend(changes.clone());
            }
            (toml::Value::Table(inner), change) if !change.is_table() && depth(&here) < 3 => {
                let keys: Vec<&str> = inner.keys().map(String::as_str).collect();
                return Err(ConfigError::Value {
                    path: here,
                    message: format!("expected a table of keys ({}), not {}", keys.join(", "), change.type_str()),
                });
            }
            (toml::Value::Float(number), toml::Value::Integer(whole)) => *number = *whole as f64,
            _ => *value = change.clone(),
        }
    }
    Ok(())
}

/// Whether a table maps joint patterns to values: then its keys are the user's, not ours. A table of tables maps the names
/// of terms, which may be any.
fn is_pattern_map(table: &toml::Table) -> bool {
    !table.is_empty()
        && table.values().all(|value| !value.is_table())
        && table.keys().any(|key| key.contains(|c: char| !(c.is_alphanumeric() || c == '_')))
}

fn depth(path: &str) -> usize {
    path.split('.').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> toml::Table {
        text.parse().unwrap()
    }

    #[test]
    fn assignments_are_typed() {
        assert_eq!(parse_assignment("a.b.c = 1.5").unwrap(), table("a.b.c = 1.5"));
        assert_eq!(parse_assignment("a=[-1, 1]").unwrap(), table("a = [-1, 1]"));
        assert_eq!(parse_assignment("a.b=none").unwrap(), table("a.b = \"none\""));
        assert!(parse_assignment("a.b").is_err());
        assert!(parse_assignment("a..b=1").is_err());
        assert!(parse_assignment("a=").is_err());
        assert!(parse_assignment("a=[1,").is_err());
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let mut base = table("rewards.action_rate.weight = -0.1\nrewards.contact.weight = 1.0");
        let error = merge("", &mut base, &table("rewards.action_rte.weight = 0")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("rewards.action_rte") && text.contains("did you mean `action_rate`"), "{text}");
    }

    #[test]
    fn whole_numbers_become_floats_and_kinds_replace() {
        let mut base =
            table("t.weight = -0.5\nt.noise = { kind = \"uniform\", min = -1.0, max = 1.0 }\nt.clip = \"none\"");
        merge("", &mut base, &table("t.weight = 2\nt.noise.max = 3.0")).unwrap();
        assert_eq!(
            base,
            table("t.weight = 2.0\nt.noise = { kind = \"uniform\", min = -1.0, max = 3.0 }\nt.clip = \"none\"")
        );
        merge("", &mut base, &table("t.noise = { kind = \"gaussian\", std = 1.0 }\nt.clip = [0, 1]")).unwrap();
        assert_eq!(base["t"]["noise"], table("noise = { kind = \"gaussian\", std = 1.0 }")["noise"]);
        assert_eq!(base["t"]["clip"], table("a = [0, 1]")["a"]);
    }
}
