package decidetest

// Variant enables one fault each, to show that the search finds it. Most were faults of the engine, the
// others of an earlier design.
type Variant struct {
	ResultByIndex      bool // answer and resume mistake a poke's result for a step of the thread
	FilesThenHead      bool // undo and redo move the files first, without a record that the head follows
	AbsentIsMissing    bool // a child that is in no list counts as never started
	PokeWithoutIntent  bool // a failed poke leaves the files from before the step, although the step stays
	CancelThenRaise    bool // a retry cancels the child before it records the new attempt
	RaiseThenStop      bool // a retry records the new attempt before the old agent has ended
	LimitedByThread    bool // "rate limited" applies to the thread instead of the head that waits
	WordsPastResult    bool // a prompt is passed to a child before the parent's own result is handled
	DiscardKeepsFiles  bool // the files of a discarded result stay for the next agent
	DueWhilePoked      bool // children of a thread that is being poked are due
	ChildByName        bool // a request for a child ignores the parent
	EndedWhilePoked    bool // a completed child counts as ended while it is being poked
	EndedIsDeaf        bool // an ended thread cannot be stopped, even if its agent runs
	FailureReopensRun  bool // the failure step's record hides that the retries are exhausted
	PokeMakesFailure   bool // a failed poke makes a failure step
	AccountIgnored     bool // each thread asks the provider separately
	RestoreOrNothing   bool // an intent cannot be settled without its files
	IntentDroppedEarly bool // a failed restore drops the intent
}
