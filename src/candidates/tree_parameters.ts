import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { badRequest, errorCodes } from '../rest/errors.ts';
import { onlyValue, type Query } from '../rest/query_string.ts';
import { strip } from '../text/python_strip.ts';
import type { CandidateRequest, OrderKey } from './request.ts';

/*
 * The parameters of GET /allocation_candidates that choose among trees: `order`, `apart_from` and `with`, from
 * microversion 1.43 on.
 */

/** More keys than these make no order that anything asks for, and each is compared for every tree. */
const mostKeys = 8;

/** The keys of `order=free:VCPU,prefer:HW_X,random`. @throws ApiError 400 naming the parameter and the key */
export function parseOrder(query: Query): readonly OrderKey[] {
  const value = onlyValue(query, 'order');
  if (value === undefined) return [];
  const keys = value.split(',').map(strip);
  if (keys.length > mostKeys) {
    throw badValue('order', `at most ${mostKeys} keys`, `${keys.length} keys in: ${value}`);
  }
  return keys.map((key): OrderKey => {
    if (key === 'random') return { kind: 'random' };
    const [, kind, name = ''] = /^(-?free|prefer):(.+)$/.exec(key) ?? [];
    if (kind === undefined) {
      const got = key === '' ? `an empty key in: ${value}` : key;
      throw badValue('order', 'keys of the forms free:VCPU, -free:VCPU, prefer:HW_CPU_X86_VMX and random', got);
    }
    if (kind === 'prefer') return { kind, traitName: name };
    return { kind: 'free', className: name, mostFirst: kind === '-free' };
  });
}

/** @throws ApiError 400 naming the parameter and the UUID */
export function parseApartFromAndWith(query: Query): Pick<CandidateRequest, 'apartFrom' | 'with'> {
  const apartFrom = parseConsumers(query, 'apart_from');
  const together = parseConsumers(query, 'with');
  const unwanted = new Set(apartFrom.map(normalUuid));
  if (together.length > 0 && together.every((uuid) => unwanted.has(normalUuid(uuid)))) {
    throw badRequest(
      `Invalid query string parameters: 'apart_from' excludes every consumer that 'with' names: ${together.join(',')}`,
      errorCodes.badQueryValue,
    );
  }
  return { apartFrom, with: together };
}

function parseConsumers(query: Query, name: string): readonly string[] {
  const value = onlyValue(query, name);
  if (value === undefined) return [];
  const uuids = value.split(',').map(strip);
  const wrong = uuids.find((uuid) => !isUuidLike(uuid));
  if (wrong === undefined) return [...new Set(uuids)];
  throw badValue(name, 'UUIDs of consumers', wrong === '' ? `an empty UUID in: ${value}` : wrong);
}

const badValue = (name: string, expected: string, got: string) =>
  badRequest(
    `Invalid query string parameters: Expected '${name}' parameter to have ${expected}. Got ${got}`,
    errorCodes.badQueryValue,
  );
