package llm

import "time"

// LongWait is the longest wait that a client sits out. An endpoint that asks
// for more gets no further try; [Error.Wait] then says how long.
const LongWait = time.Minute

// How often a question is asked at most, by kind of failure. It is little, since the engine runs
// an agent that fails again.
const (
	rateTries    = 4
	serverTries  = 4
	dialTries    = 3 // a server that is not there rarely comes up within a minute
	rejectsTries = 3 // the model's own malformed tool call
)

// firstWait is the wait when the endpoint names none, doubled each time, ±25 %.
const firstWait = 2 * time.Second

// tries counts the failures of one question.
type tries struct {
	total, rate, server, dial, reject int
}

// next says how long to wait before the next try, if there is to be one.
func (t *tries) next(e *Error, jitter func() float64) (time.Duration, bool) {
	t.total++
	n, limit := &t.server, serverTries
	switch e.Kind {
	case KindRateLimit:
		n, limit = &t.rate, rateTries
	case KindToolUse:
		n, limit = &t.reject, rejectsTries
	case KindNetwork:
		if e.dial {
			n, limit = &t.dial, dialTries
		}
	case KindServer, KindStreamCut, KindIdle:
	default:
		return 0, false
	}
	*n++
	if *n >= limit || e.Wait > LongWait || e.final {
		return 0, false
	}
	if e.Kind == KindToolUse {
		return 0, true
	}
	if e.Wait > 0 {
		return e.Wait, true
	}
	return time.Duration(float64(firstWait<<(*n-1)) * (0.75 + jitter()/2)), true
}
