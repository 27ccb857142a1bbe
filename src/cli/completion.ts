import { Argument, type Command } from 'commander';

/** The possible completions of the last word: commands and options that begin with it. */
function completions(program: Command, words: readonly string[]): readonly string[] {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? '';
  let command = program;
  for (const word of before) {
    command = command.commands.find((one) => one.name() === word) ?? command;
  }
  const options = new Set<string>();
  for (let one: Command | null = command; one !== null; one = one.parent) {
    for (const { long } of one.options) if (long) options.add(long);
  }
  const names = [
    ...command
      .createHelp()
      .visibleCommands(command)
      .map((one) => one.name()),
    ...(last.startsWith('-') ? [...options, '--help'] : []),
  ];
  return names.filter((name) => name.startsWith(last)).toSorted();
}

const scripts: Readonly<Record<string, string>> = {
  bash: `_placement_complete() {
  local IFS=$'\\n'
  COMPREPLY=($(placement __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _placement_complete placement`,
  zsh: `_placement_complete() {
  local -a found
  found=(\${(f)"$(placement __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _placement_complete placement`,
  fish: `complete -c placement -a '(placement __complete -- (commandline -opc)[2..] (commandline -ct))'`,
};

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
    .addHelpText('after', '\nExample: source <(placement completion bash)')
    .action((shell: string) => console.log(scripts[shell]));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action((words: readonly string[]) => {
      for (const name of completions(program, words)) console.log(name);
    });
}
