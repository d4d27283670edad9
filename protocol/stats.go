package protocol

// Stats answers stats: what steps have cost, in groups.
type Stats struct {
	Since   *int64      `json:"since"` // ms; null: all steps
	By      []string    `json:"by"`
	Rows    []StatsRow  `json:"rows"`
	Totals  Totals      `json:"totals"`
	Threads int         `json:"threads"` // that the steps are of
	Unread  []StatsHole `json:"unread"`  // threads whose steps could not all be read
}

// StatsRow is one group: a value for each name in By. An unknown model is "".
type StatsRow struct {
	Of map[string]string `json:"of"`
	Totals
}

// StatsHole is a thread that is missing in the sums, or part of it.
type StatsHole struct {
	Thread string `json:"thread"`
	Error  string `json:"error"`
}

// Merge adds what other steps cost together.
func (t *Totals) Merge(o Totals) {
	t.Steps += o.Steps
	t.DurationMs += o.DurationMs
	t.Spend(o.Usage)
	t.StepsWithoutUsage += o.StepsWithoutUsage
	t.StepsWithoutCost += o.StepsWithoutCost
}
