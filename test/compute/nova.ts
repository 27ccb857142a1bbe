import type { PlacementService } from '../../src/service.ts';
import { requestsTo, type Send } from '../requests.ts';
import type { ConfigOverrides } from '../services.ts';

/** The registry of services is served. */
export const withRegistry: ConfigOverrides = { compute: { enabled: true } };

/** Where the services are. */
export const services = '/compute/v2.1/os-services';

/** Requests as Nova sends them; at 2.53, the first version at which services have UUIDs, unless told otherwise. */
export const asNova = (service: Pick<PlacementService, 'app'>): Send => requestsTo(service, 'compute 2.53');
