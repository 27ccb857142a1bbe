/**
 * What is wrong with the configuration, for the operator: one line for each mistake. A command prints the message and ends;
 * no stack is of use. Lines never show the value of a secret option.
 */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
