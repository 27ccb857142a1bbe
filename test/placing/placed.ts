/** The body of a claim by query; of a new consumer unless a generation is given. */
export const placed = (candidates: unknown, generation: number | null = null) => ({
  candidates,
  project_id: 'p',
  user_id: 'u',
  consumer_generation: generation,
  consumer_type: 'INSTANCE',
});
