import { Argument, type Command, type Option } from 'commander';
import type { Placement } from '../client/index.ts';
import { print } from '../text/print.ts';
import { openPlacement } from './connection.ts';

/** The shell waits for completions. If the service does not answer in this time, there are none. */
const deadlineMs = 3_000;

/** The possible completions of the last word: commands, options and names of the service that begin with it. */
async function completions(program: Command, words: readonly string[]): Promise<readonly string[]> {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? '';
  const { command, position, option } = completedBy(program, before);
  if (option !== undefined) return valuesOf(option, last, program);
  const [, named, value = ''] = /^(--[^=]+)=(.*)$/s.exec(last) ?? [];
  const given = named === undefined ? undefined : optionOf(command, named);
  if (given !== undefined) return (await valuesOf(given, value, program)).map((one) => `${named}=${one}`);
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
  const known = names.filter((name) => name.startsWith(last)).toSorted();
  const asked = command.registeredArguments;
  const argument = asked[position] ?? (asked.at(-1)?.variadic ? asked.at(-1) : undefined);
  if (argument === undefined || last.startsWith('-')) return known;
  // Of `class delete` and `trait delete`, whose argument is called after its names.
  const wanted = argument.name() === 'CUSTOM_NAME' ? (command.parent?.name() ?? '') : argument.name();
  return [...known, ...(await namesLike(wanted, last, program))];
}

/** The possible values of an option that begin so. */
const valuesOf = async (option: Option, beginning: string, program: Command): Promise<readonly string[]> =>
  option.argChoices?.filter((one) => one.startsWith(beginning)) ?? namesLike(option.flags, beginning, program);

/** What the last word completes: which argument of which command, or the value of which option. */
function completedBy(program: Command, before: readonly string[]) {
  let command = program;
  let position = 0;
  let option: Option | undefined;
  for (const word of before) {
    if (option !== undefined) {
      option = undefined;
      continue;
    }
    const inner = command.commands.find((one) => one.name() === word);
    if (word.startsWith('-')) option = optionOf(command, word);
    else if (inner !== undefined) command = inner;
    else position += 1;
  }
  return { command, position, option };
}

/** An option that takes a value, if the word names one. */
function optionOf(command: Command, word: string): Option | undefined {
  for (let one: Command | null = command; one !== null; one = one.parent) {
    const found = one.options.find((option) => option.long === word || option.short === word);
    if (found !== undefined) return found.required ? found : undefined;
  }
  return undefined;
}

/**
 * The names that the service has for an argument or a value. Their kind is found by the help text of the argument.
 * Empty if the service does not answer.
 */
async function namesLike(wanted: string, beginning: string, program: Command): Promise<readonly string[]> {
  // An exclamation mark before a trait forbids it.
  const [, mark = '', start = ''] = /^(!?)(.*)$/s.exec(beginning) ?? [];
  const kind = kinds.find(([named]) => named.test(wanted))?.[1];
  if (kind === undefined) return [];
  try {
    const names = await kind(openPlacement(program.opts(), process.env), start);
    return names
      .filter((name) => name.startsWith(start) && !/\p{Cc}/u.test(name))
      .map((name) => mark + name)
      .toSorted();
  } catch {
    return [];
  }
}

const options = { deadlineMs };

const kinds: readonly (readonly [
  named: RegExp,
  names: (placement: Placement, start: string) => Promise<readonly string[]>,
])[] = [
  [/provider/i, async ({ providers }) => (await providers.list({}, options)).map(({ name }) => name)],
  [/trait/i, ({ traits }, start) => traits.list({ name: `startswith:${start}` }, options)],
  [/CLASS.*=/, async ({ resourceClasses }) => (await resourceClasses.list(options)).map((name) => `${name}=`)],
  [/class/i, ({ resourceClasses }) => resourceClasses.list(options)],
];

/*
 * The scripts pass the words as the shell would pass them to the command, without backslashes. For bash, each : and = ends a word: only what is
 * behind them is replaced. `read` takes backslashes away and runs nothing, but it does not know quotes.
 */
const scripts: Readonly<Record<string, string>> = {
  bash: `_placement_complete() {
  local name last part kept= words line="\${COMP_LINE:0:COMP_POINT}"
  COMPREPLY=()
  read -a words <<< "$line"
  [[ $line == *[[:space:]] && $line != *\\\\[[:space:]] ]] && words+=("")
  last="\${words[\${#words[@]}-1]}"
  IFS= read part <<< "\${COMP_WORDS[COMP_CWORD]}"
  [[ $part == *[^:=]* ]] || part=
  [[ $last == *"$part" ]] && kept="\${last%"$part"}"
  while IFS= read -r name; do
    COMPREPLY+=("$(printf %q "\${name#"$kept"}")")
  done < <(placement __complete -- "\${words[@]:1}" 2>/dev/null)
  [[ "\${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _placement_complete placement`,
  zsh: `_placement_complete() {
  local -a found
  found=(\${(f)"$(placement __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -S '' -- \${(M)found:#*=}; compadd -- \${found:#*=}; else _files; fi
}
compdef _placement_complete placement`,
  fish: `complete -c placement -a '(placement __complete -- (commandline -opc)[2..] (commandline -ct | string unescape))'`,
};

/** Adds `completion`, and the hidden command that the scripts of the shells run. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands, options, and names of providers, traits and classes')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
    .addHelpText('after', '\nExample: source <(placement completion bash)')
    .action((shell: string) => print(scripts[shell] ?? ''));
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      for (const name of await completions(program, words)) print(name);
    });
}
