import {
  computeBinary,
  type KnownService,
  readServices,
  type ServiceFilter,
  type ServiceRow,
} from '../../db/statements/services/service_row.ts';
import { changedTooMuch } from '../request/turns.ts';
import { untilDone } from '../request/until_done.ts';
import type { ComputeDependencies } from './dependencies.ts';
import { since } from './versions.ts';

/** The id that clients know a service by: unique within its cell below 2.53, and everywhere from it. */
export const serviceId = (service: KnownService, version: number): string | number =>
  version >= since.uuids ? service.uuid : service.id;

/** A service as lists and updates show it. */
export const serviceView = (service: KnownService, version: number) => ({
  id: serviceId(service, version),
  binary: service.binary,
  host: service.host,
  zone: zoneOf(service),
  status: statusOf(service),
  state: stateOf(service),
  updated_at: service.updatedAt,
  disabled_reason: service.disabledReason,
  ...(version >= since.forcedDown ? { forced_down: service.forcedDown } : {}),
});

/** Whether the operator has enabled the service. */
export const statusOf = ({ disabled }: Pick<ServiceRow, 'disabled'>): 'disabled' | 'enabled' =>
  disabled ? 'disabled' : 'enabled';

/** Whether a service is alive. */
export const stateOf = ({ up }: Pick<ServiceRow, 'up'>): 'up' | 'down' => (up ? 'up' : 'down');

/** A service without a zone is in Nova's default zone, which is another one for services that are not nova-compute. */
const zoneOf = ({ zone, binary }: ServiceRow): string => zone ?? (binary === computeBinary ? 'nova' : 'internal');

/** The services that a filter finds. @throws ApiError 503 if they lose the uuid that they get, each time */
export const findServices = (
  { database, config }: Pick<ComputeDependencies, 'database' | 'config'>,
  filter: ServiceFilter,
): Promise<readonly KnownService[]> =>
  untilDone(() => readServices(database, filter, config.compute.serviceDownTime), { lostRace: changedTooMuch });
