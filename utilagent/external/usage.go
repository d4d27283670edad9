package external

import "github.com/united-workforce/uwf/protocol"

// Usage is what a program says that its run cost.
type Usage struct {
	// Usage has input tokens without those read from a cache. Nil: it does not say.
	*protocol.Usage
	// TokensOfSession and CostOfSession: the figures count on over all runs of the
	// session, so that what was counted before is taken off.
	TokensOfSession bool
	CostOfSession   bool
}
