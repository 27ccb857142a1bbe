/**
 * The mistakes in the configuration, for the operator, one line for each. A command prints the message and ends. It
 * prints no stack, because that does not help the operator. A line never shows the value of a secret option.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
