import type { YAMLError } from 'yaml';

/** What is wrong with a text that is not valid YAML, and what to do, by the parser's error code. */
const sentences: Readonly<Record<YAMLError['code'], string>> = {
  ALIAS_PROPS: 'An alias (*) can have neither an anchor (&) nor a tag (!).',
  BAD_ALIAS: 'An alias (*) or an anchor (&) has no name. Put a value that begins with * or & in quotes.',
  BAD_COLLECTION_TYPE: 'The tag (!) does not belong to this kind of value.',
  BAD_DIRECTIVE: 'YAML has no such directive. Put a name that begins with % in quotes.',
  BAD_DQ_ESCAPE: 'Double quotes have no such escape. Write \\\\ for a backslash.',
  BAD_INDENT: 'The indentation is not that of the lines before, or a bracket before it is not closed.',
  BAD_PROP_ORDER: 'An anchor (&) or a tag (!) is not in its place before the value.',
  BAD_SCALAR_START: 'A value cannot begin with this character. Put it in quotes.',
  BLOCK_AS_IMPLICIT_KEY:
    'A second name begins inside a rule. Put rules in quotes, and begin all names in the same column.',
  BLOCK_IN_FLOW: 'A comma is missing in brackets, or a bracket is not closed.',
  DUPLICATE_KEY: 'The same name is there twice.',
  IMPOSSIBLE: 'This is not YAML.',
  KEY_OVER_1024_CHARS: 'A name has more than 1024 characters.',
  MISSING_CHAR: 'A quote or a bracket is not closed, or the colon behind a name is missing.',
  MULTILINE_IMPLICIT_KEY: 'A name must be in one line, with a colon behind it. A quote may not be closed.',
  MULTIPLE_ANCHORS: 'A value can have only one anchor (&).',
  MULTIPLE_DOCS: 'A second document begins (---). A policy file has only one.',
  MULTIPLE_TAGS: 'A value can have only one tag (!).',
  NON_STRING_KEY: 'A name must be a text.',
  RESOURCE_EXHAUSTION: 'The text is too long or nested too deep.',
  TAB_AS_INDENT: 'There is a tab. Indent with spaces.',
  TAG_RESOLVE_FAILED: 'There is no such tag (!). Put a value that begins with ! in quotes.',
  UNEXPECTED_TOKEN:
    'This cannot follow here. Put rules in quotes, each in a line of its own behind its name and a colon.',
};

/** The sentence for an error of the parser. */
export const sentenceOf = ({ code }: YAMLError): string => sentences[code] ?? sentences.IMPOSSIBLE;
