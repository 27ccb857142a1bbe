import type { Config } from '../config/config.ts';
import type { Tls } from '../http/tls_files.ts';
import type { Figures } from '../metrics/gathering.ts';

/*
 * What the primary process and its workers tell each other. A channel keeps the order, so that a worker that is told to end
 * has got every connection that was handed to it before.
 */

/** What the primary tells a worker. */
export type ToWorker =
  /** The first message. Workers do not read the configuration themselves, so that all have the same. */
  | { readonly kind: 'start'; readonly worker: number; readonly config: Config; readonly tls: Tls | undefined }
  /** Comes with a socket. */
  | { readonly kind: 'connection'; readonly id: number }
  | { readonly kind: 'renewTls'; readonly tls: Tls }
  /** The log file was moved away. */
  | { readonly kind: 'reopenLog' }
  | { readonly kind: 'tellFigures'; readonly id: number }
  | { readonly kind: 'figuresOfAll'; readonly id: number; readonly figures: readonly Figures[] }
  | { readonly kind: 'end' };

/** What a worker tells the primary. */
export type FromWorker =
  | { readonly kind: 'ready' }
  /** The worker has the connection: the primary may forget it. */
  | { readonly kind: 'taken'; readonly id: number }
  /** One of its connections has ended. */
  | { readonly kind: 'released' }
  /** It got a SIGTERM of its own, and wants to be replaced. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'figures'; readonly id: number; readonly figures: Figures }
  | { readonly kind: 'gatherFigures'; readonly id: number };
