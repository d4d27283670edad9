package react

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// guard notices a model that goes in circles: the same call with the same
// result, or nothing but failures. A call whose result changes is no circle, so
// polling is fine.
type guard struct {
	seen     map[string]*repeat
	failures int // in a row
}

type repeat struct {
	result [sha256.Size]byte
	times  int
}

// callKey is the same for calls that mean the same: JSON sorts the arguments.
func callKey(name string, args map[string]any) string {
	b, err := json.Marshal(args)
	if err != nil {
		return "" // cannot happen: args came from JSON
	}
	return strings.ToLower(name) + " " + string(b)
}

// repeats is how often a call has had the same result, one after the other.
func (g *guard) repeats(key string) int {
	if r := g.seen[key]; r != nil {
		return r.times
	}
	return 0
}

// ran notes a result and returns how often this call has had it now. A file
// that was changed is a reason to look at anything again.
func (g *guard) ran(key string, result tools.Result, writes bool) int {
	if result.Failed {
		g.failures++
	} else {
		g.failures = 0
	}
	if g.seen == nil || writes && !result.Failed {
		kept := g.seen[key]
		g.seen = map[string]*repeat{}
		if kept != nil {
			g.seen[key] = kept
		}
	}
	sum := sha256.Sum256([]byte(result.Text))
	r := g.seen[key]
	if r == nil || r.result != sum {
		r = &repeat{result: sum}
		g.seen[key] = r
	}
	r.times++
	return r.times
}

// failed notes a call that was not run.
func (g *guard) failed(result tools.Result) tools.Result {
	g.failures++
	return result
}
