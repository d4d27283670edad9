package react

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/utilagent/tools"
)

// guard detects a model that is stuck in a loop: the same call with the same result, a cycle of two to four
// calls with the same results, or only failures. A call whose result changes is not a loop, so polling is
// fine.
type guard struct {
	seen     map[string]*repeat
	recent   []made
	failures int // consecutive
}

type repeat struct {
	result [sha256.Size]byte
	times  int
}

// made is a call with its result.
type made struct {
	key    string
	result [sha256.Size]byte
}

// The maximum length of a cycle; the history is just long enough to detect repeatsToStop repetitions of it.
const (
	longestCircle = 4
	remembered    = longestCircle * repeatsToStop
)

// callKey returns a key that is equal for equivalent calls: JSON sorts the arguments.
func callKey(name string, args map[string]any) string {
	b, err := json.Marshal(args)
	if err != nil {
		return "" // cannot happen: args came from JSON
	}
	return strings.ToLower(name) + " " + string(b)
}

// refuse returns the reason for not running a call, or "".
func (g *guard) refuse(key string) string {
	if r := g.seen[key]; r != nil && r.times >= repeatsToStop-1 {
		return fmt.Sprintf("not run: this same call has had the same result %d times. Do something else, or give the final answer", r.times)
	}
	n, times := g.circle()
	if times >= repeatsToStop-1 && slices.ContainsFunc(g.recent[len(g.recent)-n:], func(m made) bool { return m.key == key }) {
		return fmt.Sprintf("not run: the same %d calls in turn have had the same results %d times. Do something else, or give the final answer", n, times)
	}
	return ""
}

// ran records a result and returns a warning for the model, or "". After a file was changed, reading anything
// again is fine, but changing it back and forth forever is not.
func (g *guard) ran(key string, result tools.Result, writes bool) string {
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
	sum := sha256.Sum256([]byte(withoutTimes(result.Text)))
	r := g.seen[key]
	if r == nil || r.result != sum {
		r = &repeat{result: sum}
		g.seen[key] = r
	}
	r.times++
	if g.recent = append(g.recent, made{key, sum}); len(g.recent) > remembered {
		g.recent = append(g.recent[:0], g.recent[len(g.recent)-remembered:]...)
	}
	if r.times >= repeatsToWarn {
		return fmt.Sprintf("\n[The same call with the same result for the %d. time: try something else.]", r.times)
	}
	if n, times := g.circle(); times >= repeatsToWarn {
		return fmt.Sprintf("\n[The same %d calls in turn with the same results for the %d. time: you are going in a circle. Try something else.]", n, times)
	}
	return ""
}

// circle returns the length of the shortest cycle of more than one call at the end of the history and its
// number of repetitions, or 0, 0.
func (g *guard) circle() (n, times int) {
	for n = 2; n <= longestCircle; n++ {
		same := 0
		for i := len(g.recent) - 1; i >= n && g.recent[i] == g.recent[i-n]; i-- {
			same++
		}
		if times = (same + n) / n; times >= repeatsToWarn {
			return n, times
		}
	}
	return 0, 0
}

// forget clears the history after results were removed from the conversation, because reading them again is
// not a loop.
func (g *guard) forget() { g.seen, g.recent = nil, nil }

// failed records a call that was not run.
func (g *guard) failed(result tools.Result) tools.Result {
	g.failures++
	return result
}
