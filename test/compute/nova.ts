import type { PlacementService } from '../../src/start/service.ts';
import { requestsTo, type Send } from '../support/requests.ts';
import type { ConfigOverrides } from '../support/services.ts';

/** Switches the registry of services on. */
export const withRegistry: ConfigOverrides = { compute: { enabled: true } };

/** The path of the services. */
export const services = '/compute/v2.1/os-services';

/** Sends requests as Nova does, at 2.53 by default, the first version in which services have UUIDs. */
export const asNova = (service: Pick<PlacementService, 'app'>): Send => requestsTo(service, 'compute 2.53');
