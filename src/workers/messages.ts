import type { ServiceUserTrial } from '../access/keystone/service_token.ts';
import type { Config } from '../config/config.ts';
import type { Tls } from '../http/server/tls_files.ts';
import type { Figures, Gathered } from '../metrics/gathering.ts';

/*
 * The messages between the primary process and its workers. A channel keeps their order: a worker that gets the message
 * to end has already got every connection that was handed to it.
 */

/** The address on which a connection was accepted: the address of the API, or of `/metrics`. */
export type ListenerName = 'api' | 'metrics';

/** The messages from the primary to a worker. */
export type ToWorker =
  /** The first message. Workers do not read the configuration themselves, so that all have the same. */
  | { readonly kind: 'start'; readonly worker: number; readonly config: Config; readonly tls: Tls | undefined }
  /** Sent together with the socket. */
  | { readonly kind: 'connection'; readonly id: number; readonly listener: ListenerName }
  | { readonly kind: 'renewTls'; readonly tls: Tls }
  | { readonly kind: 'renewServiceUser'; readonly settings: Config['keystoneAuthtoken'] }
  /** One worker checks the settings at Keystone, before all workers take them. */
  | { readonly kind: 'tryServiceUser'; readonly id: number; readonly settings: Config['keystoneAuthtoken'] }
  | { readonly kind: 'renewPolicy'; readonly id: number; readonly settings: Config['osloPolicy'] }
  /** Sent also if the settings are the same: the log file was renamed, and must be reopened. */
  | { readonly kind: 'renewLog'; readonly settings: Config['default'] }
  | { readonly kind: 'reportFigures'; readonly id: number }
  | { readonly kind: 'reportShapes'; readonly id: number }
  | ({ readonly kind: 'figuresOfAll'; readonly id: number } & Gathered)
  | { readonly kind: 'end' };

/** The messages from a worker to the primary. */
export type FromWorker =
  | { readonly kind: 'ready' }
  /** The worker has the connection: the primary may close its copy. */
  | { readonly kind: 'taken'; readonly id: number }
  /** One of its connections has ended. */
  | { readonly kind: 'released' }
  /** The worker itself got a SIGTERM, and has to be replaced. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'figures'; readonly id: number; readonly figures: Figures }
  /** No text where the worker failed. */
  | { readonly kind: 'shapes'; readonly id: number; readonly text: string | undefined }
  | { readonly kind: 'gatherFigures'; readonly id: number }
  | { readonly kind: 'serviceUserTried'; readonly id: number; readonly trial: ServiceUserTrial }
  /** Why its rules stay as they were, one sentence for each reason. */
  | { readonly kind: 'policyRenewed'; readonly id: number; readonly problems: readonly string[] };
