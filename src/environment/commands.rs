//! Commands set from outside.

use manege_systems::managers::command::{self, CommandHandle, CommandManager, CommandOverrideError, Rows};

use super::Environment;

impl Environment {
    /// A command by name, to be set with [`override_command`](Self::override_command).
    ///
    /// # Errors
    /// The environment has no such command.
    pub fn command_handle(&self, name: &str) -> Result<CommandHandle, CommandOverrideError> {
        self.world.resource::<CommandManager>().handle(name)
    }

    /// Sets a command of some rows, as a joystick or a script does, until
    /// [`release_command`](Self::release_command).
    ///
    /// `values` holds the command's values once, the same for all `rows`, or once for each of them. Nothing changes them,
    /// neither resampling nor the end of an episode; behind them the command goes on as if it had not been set. The
    /// observations of the next [`step`](Self::step) are the first to show them.
    ///
    /// ```
    /// use manege::Environment;
    /// use manege::environment::Rows;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut env = Environment::builder("go2_joystick_flat").rows(3).build()?;
    /// env.reset()?;
    /// let twist = env.command_handle("twist")?;
    /// env.override_command(twist, Rows::These(&[0, 2]), &[0.5, 0.0, -0.2])?;
    /// env.step(&vec![0.0; env.rows() * env.action_width()])?;
    /// assert_eq!(env.commands()[6..], [0.5, 0.0, -0.2]);
    /// env.release_command(twist, Rows::All)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The handle is another environment's, there are too few or too many values, one of them is not finite, or a row does
    /// not exist or is given twice. Nothing was changed then.
    pub fn override_command(
        &mut self,
        command: CommandHandle,
        rows: Rows<'_>,
        values: &[f32],
    ) -> Result<(), CommandOverrideError> {
        command::override_command(&mut self.world, command, rows, values)
    }

    /// Gives a command of some rows back to its term: they have the command that they would have had.
    ///
    /// # Errors
    /// The handle is another environment's, or a row does not exist or is given twice. Nothing was changed then.
    pub fn release_command(&mut self, command: CommandHandle, rows: Rows<'_>) -> Result<(), CommandOverrideError> {
        command::release_command(&mut self.world, command, rows)
    }
}
