package decidetest

// Variant turns on one fault, to show that the search finds it: most are faults of the engine
// as it is now, the others of an earlier design.
type Variant struct {
	ResultByIndex      bool // answer and resume take a poke's result for a step of the thread
	FilesThenHead      bool // undo and redo move the files first; no record shows that the head follows
	AbsentIsMissing    bool // a child that no list has counts as never started
	PokeWithoutIntent  bool // a poke that fails leaves the files from before the step that stays
	CancelThenRaise    bool // a retry cancels the child before it notes that another is wanted
	RaiseThenStop      bool // a retry notes that another child is wanted before the old one's agent has ended
	LimitedByThread    bool // "rate limited" belongs to the thread, not to the head that waits
	WordsPastResult    bool // words are handed to a child before the parent's own result is seen
	DiscardKeepsFiles  bool // discarding a result leaves its files to the next agent
	DueWhilePoked      bool // children of a thread that is being poked are due
	ChildByName        bool // a request that names a child does not look at the parent
	EndedWhilePoked    bool // a completed child counts as ended while a poke of it is under way
	EndedIsDeaf        bool // an ended thread cannot be stopped, even if its agent runs
	FailureReopensRun  bool // the failure step's record hides that the tries are used up
	PokeMakesFailure   bool // a poke that fails makes a failure step
	AccountIgnored     bool // each thread asks the provider for itself
	RestoreOrNothing   bool // there is no way to settle an intent without its files
	IntentDroppedEarly bool // an error in a restore drops the intent
}
