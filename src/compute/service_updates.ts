import * as v from 'valibot';
import { computeBinary, type KnownService } from '../../db/statements/services/service_row.ts';
import { type ServiceUpdate, updateService } from '../../db/statements/services/update_service.ts';
import { bySince } from '../placement/versions.ts';
import { badRequest, notFound } from '../request/errors.ts';
import type { Answer, ApiRequest } from '../rest/endpoint.ts';
import { object, oneOf } from '../rest/json_schema.ts';
import type { ComputeDependencies } from './dependencies.ts';
import { findServices, serviceView } from './service_view.ts';
import { hostName, readUuid, shortText, truth } from './validation.ts';
import { since } from './versions.ts';

// Request schemas

const actionFields = { host: hostName, binary: shortText, disabled_reason: v.optional(shortText) };
type ActionBody = {
  readonly host: string;
  readonly binary: string;
  readonly disabled_reason?: string | undefined;
  readonly forced_down?: boolean | undefined;
};

const actionBodies: readonly { readonly since: number; readonly schema: v.GenericSchema<unknown, ActionBody> }[] = [
  { since: since.forcedDown, schema: object({ ...actionFields, forced_down: v.optional(truth) }) },
  { since: since.firstVersion, schema: object(actionFields) },
];

const changes = object({
  status: v.optional(oneOf(['enabled', 'disabled'])),
  disabled_reason: v.optional(shortText),
  forced_down: v.optional(truth),
});

// Handlers

/** The change of a service by an action (below 2.53), and the fields of its answer in addition to host and binary. */
type Action = {
  readonly since: number;
  readonly effect: (body: ActionBody) => { readonly update: ServiceUpdate; readonly shown: object };
};

const disable = (reason: string | undefined) => ({
  update: { status: { disabled: true, reason: reason ?? null } },
  shown: { status: 'disabled', ...(reason === undefined ? {} : { disabled_reason: reason }) },
});

const actions: Readonly<Record<string, Action>> = {
  enable: {
    since: since.firstVersion,
    effect: () => ({ update: { status: { disabled: false, reason: null } }, shown: { status: 'enabled' } }),
  },
  disable: { since: since.firstVersion, effect: () => disable(undefined) },
  'disable-log-reason': {
    since: since.firstVersion,
    effect: ({ disabled_reason: reason }) => {
      if (reason === undefined) throw badRequest('Missing disabled reason field');
      return disable(reason);
    },
  },
  'force-down': {
    since: since.forcedDown,
    effect: ({ forced_down: forcedDown }) => {
      if (forcedDown === undefined) throw badRequest('Missing forced_down field');
      return { update: { forcedDown }, shown: { forced_down: forcedDown } };
    },
  },
};

/** PUT /os-services/{action}, below 2.53: the body names the service. */
export async function runAction(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const body = await request.json(bySince(actionBodies, request.version));
  const name = request.param('service_id');
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined;
  if (action === undefined || action.since > request.version) throw notFound('Unknown action');
  const { update, shown } = action.effect(body);
  const { host, binary } = body;
  refuseOthers(binary);
  const services = await findServices(dependencies, { host });
  if (services.length === 0) throw notFound(`Host '${host}' is not mapped to any cell`);
  const service = services.find((each) => each.binary === binary);
  const row = service && (await updateService(dependencies.database, service, update, downTimeOf(dependencies)));
  if (row === undefined) throw notFound(`Could not find binary ${binary} on host ${host}.`);
  return { status: 200, json: { service: { host, binary, ...shown } } };
}

/** PUT /os-services/{uuid}, from 2.53. */
export async function changeService(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const body = await request.json(changes);
  const id = request.param('service_id');
  const uuid = readUuid(id);
  const [service] = await findServices(dependencies, { uuid });
  if (service === undefined) throw notFound(noSuchService(id));
  refuseOthers(service.binary);
  const row = await updateService(dependencies.database, service, updateOf(body), downTimeOf(dependencies));
  if (row === undefined) throw notFound(noSuchService(id));
  const changed: KnownService = { ...row, uuid };
  return { status: 200, json: { service: serviceView(changed, request.version) } };
}

const downTimeOf = ({ config }: ComputeDependencies): number => config.compute.serviceDownTime;

/** @throws ApiError 400 if the body changes nothing, or has a reason for enabling */
function updateOf({
  status,
  disabled_reason: reason,
  forced_down: forcedDown,
}: v.InferOutput<typeof changes>): ServiceUpdate {
  if (status === 'enabled' && reason !== undefined) {
    throw badRequest("Specifying 'disabled_reason' with status 'enabled' is invalid.");
  }
  if (status === undefined && forcedDown === undefined) {
    throw badRequest("No updates were requested. Fields 'status' or 'forced_down' should be specified.");
  }
  return {
    ...(status === undefined ? {} : { status: { disabled: status === 'disabled', reason: reason ?? null } }),
    ...(forcedDown === undefined ? {} : { forcedDown }),
  };
}

const noSuchService = (id: string): string => `Service ${id} could not be found.`;

function refuseOthers(binary: string): void {
  if (binary === computeBinary) return;
  throw badRequest(`Updating a ${binary} service is not supported. Only ${computeBinary} services can be updated.`);
}
