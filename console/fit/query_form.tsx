import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { compareNames } from '../../src/text/strings.ts';
import { ProviderLink } from '../provider_link.tsx';
import { amountFrom, amountText, counted, exactText, hasUnit, visible } from '../text.ts';
import { uuidOf } from '../uuid.ts';
import { type Named, named, withNames, withUuids } from './named.ts';
import {
  type AmountField,
  type GroupFields,
  newGroup,
  type QueryFields,
  withNumbers,
  withWord,
} from './query_fields.ts';
import { TokenField } from './token_field.tsx';

/** What the fields offer while a user types. */
export type Known = {
  readonly classes: readonly string[];
  readonly traits: readonly string[];
  readonly aggregates: readonly Named[];
  readonly providers: () => Iterable<Named>;
};

/** The form of a query. It begins with the query of the URL. */
export function QueryForm({
  initial,
  known,
  onAsk,
}: {
  readonly initial: QueryFields;
  readonly known: Known;
  readonly onAsk: (fields: QueryFields) => void;
}) {
  const [fields, setFields] = useState(() => withRow(initial));
  const [trouble, setTrouble] = useState('');
  const classes = useId();
  const addGroup = useRef<HTMLButtonElement>(null);
  const changeGroup = (index: number, group: GroupFields | undefined) =>
    setFields({
      ...fields,
      groups: fields.groups.flatMap((each, at) => (at !== index ? [each] : group === undefined ? [] : [group])),
    });
  const hasMore = fields.root_required.length + fields.same_subtree.length > 0 || fields.order !== '';
  return (
    <form
      class="query"
      onSubmit={(event) => {
        event.preventDefault();
        const unclear = fields.groups.flatMap(({ in_tree }) => unclearTree(in_tree, known.providers()));
        setTrouble(unclear.join(' '));
        if (unclear.length > 0) return;
        const data = new FormData(event.currentTarget);
        // A word that was typed and not added counts as well.
        const written = (name: string) => String(data.get(name) ?? '').trim();
        const groups = fields.groups.map((group) => ({
          ...group,
          required: withWord(group.required, written(`required${group.suffix}`)),
          member_of: withWord(group.member_of, withUuids(written(`member_of${group.suffix}`), known.aggregates)),
          in_tree: named(group.in_tree, known.providers())[0]?.uuid ?? uuidOf(group.in_tree) ?? group.in_tree,
        }));
        const root_required = withWord(fields.root_required, written('root_required'));
        const same_subtree = withWord(fields.same_subtree, written('same_subtree'));
        onAsk(withNumbers({ ...fields, groups, root_required, same_subtree }));
      }}
    >
      <datalist id={classes}>
        {known.classes.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {fields.groups.map((group, index) => (
        <GroupFieldset
          key={group.suffix}
          group={group}
          classes={classes}
          known={known}
          onChange={(changed) => changeGroup(index, changed)}
          onRemove={
            index === 0
              ? undefined
              : () => {
                  changeGroup(index, undefined);
                  addGroup.current?.focus(); // the button that was pressed is removed
                }
          }
        />
      ))}
      {fields.groups.length > 1 ? (
        <label class="line">
          <span>Groups</span>
          <select
            value={fields.group_policy || 'none'}
            onChange={(event) => setFields({ ...fields, group_policy: event.currentTarget.value })}
          >
            <option value="none">may come from one provider</option>
            <option value="isolate">from different providers</option>
          </select>
        </label>
      ) : null}
      <details open={hasMore}>
        <summary>More conditions</summary>
        <TokenField
          label="Traits of the root"
          name="root_required"
          values={fields.root_required}
          options={known.traits}
          placeholder="HW_X or !HW_X"
          onChange={(root_required) => setFields({ ...fields, root_required })}
        />
        <TokenField
          label="Groups in one subtree"
          name="same_subtree"
          values={fields.same_subtree}
          options={[]}
          placeholder="_1,_2"
          onChange={(same_subtree) => setFields({ ...fields, same_subtree })}
        />
        <label class="line">
          <span>Order</span>
          <input
            type="text"
            value={fields.order}
            placeholder="free:VCPU, -free:VCPU, prefer:HW_X, random"
            onInput={(event) => setFields({ ...fields, order: event.currentTarget.value.trim() })}
          />
        </label>
      </details>
      {trouble === '' ? null : (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      <div class="buttons">
        <button type="submit" class="primary">
          Where does it fit?
        </button>
        <button
          ref={addGroup}
          type="button"
          onClick={() => setFields({ ...fields, groups: [...fields.groups, newGroup(fields.groups)] })}
        >
          Add a group
        </button>
      </div>
    </form>
  );
}

/** A form without any amount has an empty row to begin with. */
function withRow(fields: QueryFields): QueryFields {
  const [first, ...others] = fields.groups;
  if (first === undefined || others.length > 0 || first.resources.length > 0) return fields;
  return { ...fields, groups: [{ ...first, resources: [{ name: '', amount: '1' }] }] };
}

/** Why a text names no provider, or not one alone; nothing for a UUID, or no text. */
function unclearTree(text: string, providers: Iterable<Named>): readonly string[] {
  if (text === '' || uuidOf(text) !== undefined) return [];
  const found = named(text, providers);
  if (found.length === 1) return [];
  if (found.length === 0) return [`No provider has “${visible(text)}” in its name.`];
  const names = found.map(({ name }) => visible(name)).toSorted(compareNames);
  const some = names.slice(0, 3);
  return [
    `${counted(found.length, 'provider')} have “${visible(text)}” in their name: ${some.join(', ')}${found.length > 3 ? ' …' : ''}`,
  ];
}

function GroupFieldset({
  group,
  classes,
  known,
  onChange,
  onRemove,
}: {
  readonly group: GroupFields;
  readonly classes: string;
  readonly known: Known;
  readonly onChange: (group: GroupFields) => void;
  readonly onRemove: (() => void) | undefined;
}) {
  const change = (index: number, row: Partial<AmountField> | undefined) =>
    onChange({
      ...group,
      resources: group.resources.flatMap((each, at) =>
        at !== index ? [each] : row === undefined ? [] : [{ ...each, ...row }],
      ),
    });
  const inTree = uuidOf(group.in_tree);
  const addClass = useRef<HTMLButtonElement>(null);
  return (
    <fieldset class="group">
      <legend>
        {group.suffix === '' ? 'From any providers of a tree' : `From one provider (group ${visible(group.suffix)})`}
      </legend>
      {group.resources.map(({ name, amount }, index) => (
        <div class="amount" key={index}>
          <AmountInput
            name={name}
            amount={amount}
            label={`Amount ${index + 1}`}
            onChange={(next) => change(index, { amount: next })}
          />
          <ClassInput
            name={name}
            list={classes}
            label={`Resource class ${index + 1}`}
            isRepeated={name !== '' && group.resources.findIndex((each) => each.name === name) < index}
            onChange={(next) => change(index, { name: next })}
          />
          <button
            type="button"
            aria-label={`Remove ${name === '' ? `row ${index + 1}` : name}`}
            onClick={() => {
              change(index, undefined);
              addClass.current?.focus();
            }}
          >
            ×
          </button>
          <AmountMeant name={name} amount={amount} />
        </div>
      ))}
      <div class="buttons">
        <button
          ref={addClass}
          type="button"
          class="small"
          onClick={() => onChange({ ...group, resources: [...group.resources, { name: '', amount: '1' }] })}
        >
          Add a class
        </button>
        {onRemove === undefined ? null : (
          <button type="button" class="small" onClick={onRemove}>
            Remove the group
          </button>
        )}
      </div>
      <TokenField
        label="Traits"
        name={`required${group.suffix}`}
        values={group.required}
        options={known.traits}
        placeholder="HW_X, !HW_X or in:HW_X,HW_Y"
        onChange={(required) => onChange({ ...group, required })}
      />
      <TokenField
        label="Aggregates"
        name={`member_of${group.suffix}`}
        values={group.member_of}
        options={known.aggregates.map(({ name }) => name)}
        placeholder="rack01, !rack01 or in:rack01,rack02"
        meaning={(word) => withUuids(word, known.aggregates)}
        shown={(value) => withNames(value, known.aggregates)}
        onChange={(member_of) => onChange({ ...group, member_of })}
      />
      <label class="line">
        <span>In the tree of</span>
        <input
          type="text"
          value={group.in_tree}
          placeholder="name or UUID of a provider"
          onInput={(event) => onChange({ ...group, in_tree: event.currentTarget.value.trim() })}
        />
        {inTree === undefined ? null : (
          <span class="faint">
            = <ProviderLink uuid={inTree} />
          </span>
        )}
      </label>
    </fieldset>
  );
}

/** A resource class. One that a row above has is not sent, since the query would have the amount of one of them only. */
function ClassInput({
  name,
  list,
  label,
  isRepeated,
  onChange,
}: {
  readonly name: string;
  readonly list: string;
  readonly label: string;
  readonly isRepeated: boolean;
  readonly onChange: (name: string) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const trouble = isRepeated ? `A row above has ${name} already` : '';
  useLayoutEffect(() => input.current?.setCustomValidity(trouble), [trouble]);
  return (
    <input
      ref={input}
      type="text"
      list={list}
      value={name}
      placeholder="class, such as VCPU"
      aria-label={label}
      autoComplete="off"
      onInput={(event) => onChange(event.currentTarget.value.trim().toUpperCase())}
    />
  );
}

/** A number, or an amount with a unit. Any other text is not sent. */
function AmountInput({
  name,
  amount,
  label,
  onChange,
}: AmountField & { readonly label: string; readonly onChange: (amount: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const isRight = name === '' || amount.trim() === '' || amountFrom(name, amount) !== undefined;
  const help = hasUnit(name)
    ? `A whole amount of ${name}, such as ${amountText(name, 8)}, ${amountText(name, 8192)} or ${8192}`
    : `A whole number of ${name}, without a unit`;
  useLayoutEffect(() => input.current?.setCustomValidity(isRight ? '' : help), [isRight, help]);
  return (
    <input
      ref={input}
      type="text"
      value={amount}
      aria-label={label}
      autoComplete="off"
      spellcheck={false}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

/** An amount with the unit of its class, if it has one: `= 200 GiB`. */
function AmountMeant({ name, amount }: AmountField) {
  const value = amountFrom(name, amount || '1');
  return value === undefined || !hasUnit(name) ? null : (
    <span class="faint meant">
      = {amountText(name, value)}
      {amountText(name, value).startsWith(`${amount} `) ? '' : `, ${exactText(name, value)}`}
    </span>
  );
}
