//go:build unix

package decidetest

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/united-workforce/uwf/engine/internal/decide"
)

var (
	uwf       = flag.String("uwf", "", "the program under test; default: it is built, and the torturer, too")
	torturer  = flag.String("torture", "", "the torturer")
	seeds     = flag.Uint64("seed", 1, "the first seed")
	histories = flag.Int("histories", 50, "how many histories are drawn at least; make torture draws for minutes")
	long      = flag.Duration("long", 0, "draw histories for this long")
)

// TestProgram plays random histories with uwf in a repository. After each command, some state of the model
// must explain the observation: the threads, their chains and files, and which agents ran.
func TestProgram(t *testing.T) {
	p, drawn := built(t), uint64(0)
	var sum tally
	t.Run("known", func(t *testing.T) { known(t, p) })
	until := time.Now().Add(*long)
	for batch := 0; batch == 0 || time.Now().Before(until) && !t.Failed(); batch++ {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			for range *histories {
				seed := *seeds + drawn
				drawn++
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(seed, 32))
					h := newHistory(t, p, real()[random.IntN(len(real()))])
					why := h.drawn(random)
					sum.add(h)
					if why != "" {
						t.Error(h.shrunk(why))
					}
				})
			}
		})
	}
	t.Logf("%d histories from seed %d: %d commands, cut off: %v", drawn, *seeds, sum.commands, sum.cuts)
	require.True(t, drawn < 50 || sum.cuts["before"] > 0 && sum.cuts["after"] > 0)
}

// known plays histories that have failed before.
func known(t *testing.T, p programs) {
	for _, c := range []struct {
		scenario, names string
		at              int // the interrupted command
		cut             cut
	}{
		{"children that ask", "to the end; to the end; resume x; to the end", 2, cut{by: "after"}},
		{"a completed thread", "step; poke x; answer; run-due", 1, cut{by: "after"}},
		{"agents", "step; step; poke earlier; run-due", 2, cut{by: "after"}},
		{"a completed thread", "step; resume x; kill", 1, cut{by: "before", fate: "lives"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == c.scenario })
			h := newHistory(t, p, scenarios[i])
			var moves []move
			for i, name := range strings.Split(c.names, "; ") {
				m := newMove(name)
				if i == c.at {
					m.cut = c.cut
				}
				moves = append(moves, m)
			}
			if why := h.again(moves); why != "" {
				t.Error(h.report(why))
			}
		})
	}
}

// tally counts what was played.
type tally struct {
	sync.Mutex
	commands int
	cuts     map[string]int
}

func (a *tally) add(h *history) {
	a.Lock()
	defer a.Unlock()
	if a.cuts == nil {
		a.cuts = map[string]int{}
	}
	for _, m := range h.moves {
		if a.commands++; m.cut.hit {
			a.cuts[m.cut.by]++
		}
	}
}

// history is a history being played.
type history struct {
	*place
	scenario
	guesses []guess
	seen    []seen // the last observation
	moves   []move
	lines   []string
	unsure  []bool // for each child, whether making its worktree may have been interrupted
	damaged bool   // a line was lost
	over    bool   // the disk was full and a step has no files, so it is unknown what undo must restore
}

func newHistory(t *testing.T, p programs, s scenario) *history {
	h := &history{place: newPlace(t, p, s.roles), scenario: s}
	h.seen = h.look()
	h.guesses = []guess{{s.start(), map[int]string{}, map[int]string{0: h.seen[0].files}}}
	return h
}

// drawn plays a random history; why is not "" if the program contradicts the model.
func (h *history) drawn(random *rand.Rand) (why string) {
	extent := map[string]int{} // system calls per command
	const most = 6
	for n := 0; n < most && why == "" && !h.over; n++ {
		m := h.draw(random, extent)
		why = h.play(m)
		cut := h.moves[len(h.moves)-1].cut
		extent[m.name] = max(extent[m.name], cut.calls)
	}
	return h.ended(why)
}

// ended checks that the thread can continue after the history.
func (h *history) ended(why string) string {
	if h.over {
		return why
	}
	if why == "" && len(h.agents()) > 0 {
		why = h.play(move{name: "the agent ends"})
	}
	if why == "" {
		why = h.play(newMove("step"))
	}
	if why == "" {
		if e := h.run("cas", "fsck"); h.damaged != (e.code != 0) {
			why = e.String()
		}
	}
	return why
}

// again plays moves once more, skipping impossible ones.
func (h *history) again(moves []move) (why string) {
	for _, m := range moves {
		if !h.can(m) {
			return ""
		}
		if why = h.play(m); why != "" {
			return why
		}
	}
	return h.ended("")
}

// shrunk reports a shorter history that fails as well.
func (h *history) shrunk(why string) string {
	report, moves := h.report(why), h.moves
	for i := len(moves) - 2; i >= 0; i-- {
		fewer := slices.Concat(moves[:i:i], moves[i+1:])
		again := newHistory(h.t, h.programs, h.scenario)
		if why := again.again(fewer); why != "" {
			report, moves = again.report(why), again.moves
			i = min(i, len(moves)-1)
		}
	}
	return report
}

func (h *history) report(why string) string {
	return fmt.Sprintf("%q:\n%s\n%s", h.name, strings.Join(h.lines, "\n"), why)
}

// real returns the scenarios that uwf can play.
func real() []scenario {
	return slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool {
		return strings.Contains(s.roles, "c")
	})
}

// draw returns a random move. Commands that change nothing are rare.
func (h *history) draw(random *rand.Rand, extent map[string]int) move {
	if len(h.agents()) > 0 && random.IntN(2) == 0 {
		return move{name: []string{"the agent ends", "the agent dies"}[random.IntN(2)]}
	}
	names, m := strings.Split(h.commands, "; "), newMove("step")
	for range 8 {
		next := newMove(names[random.IntN(len(names))])
		if next.command.child {
			next.child = 1 + random.IntN(max(1, len(h.kids)))
		}
		if next.name == "fork" || !h.can(next) {
			continue
		}
		a := Decide(h.guesses[0].read(next.child, next.r, next.words, Variant{}), next.r)
		if next.event != nil || a.Kind != Refuse && a.Kind != Report || random.IntN(6) == 0 {
			m = next
			break
		}
	}
	switch random.IntN(10) {
	case 0, 1:
		m.outcome = fails
		if h.limits {
			m.outcome = limited
		}
	case 2, 3:
		m.cut = cut{by: "before", fate: []string{"ends", "dies", "lives"}[random.IntN(3)]}
	case 4:
		m.cut = cut{by: "after", fate: "ends"}
	case 5, 6:
		if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
			break // tracing isn't possible
		}
		m.cut = cut{by: []string{"kill", "kill", "kill all", "ENOSPC"}[random.IntN(4)]}
		const some = 60
		m.cut.at = 1 + random.IntN(cmp.Or(extent[m.name], some))
	}
	return m
}

// can reports whether a command has its target and terminates.
func (h *history) can(m move) bool {
	driven := m.toTheEnd && len(h.agents()) > 0 // it waits for running children
	return !driven && m.child <= len(h.kids) && (!m.r.Earlier || len(h.seen[0].chain) > 2)
}

// newMove returns a command without an interruption.
func newMove(name string) move {
	m := move{command: commands[name], name: name, toTheEnd: name == toTheEnd}
	m.r.ToEnd = m.toTheEnd
	return m
}

// play plays a move, and checks the observation after it.
func (h *history) play(m move) (why string) {
	h.t.Helper()
	line := m.name
	fate, isFate := strings.CutPrefix(m.name, "the agent ")
	switch {
	case isFate:
		if len(h.agents()) > 0 {
			h.release(fate)
		}
	case m.name == "time passes":
		h.granted()
	case m.name == "a line is lost":
		h.loses()
	default:
		line = h.types(&m)
	}
	if isFate {
		m.event = func(*world) {}
	}
	h.moves, h.lines = append(h.moves, m), append(h.lines, line)
	return h.hold(m)
}

// types runs a command.
func (h *history) types(m *move) (line string) {
	h.t.Helper()
	id := append([]string{h.id}, h.kids...)[m.child]
	// An agent asks until it is answered. A resume of an active thread contains the answer, or contained it
	// before the provider refused.
	t := h.guesses[0].threads[m.child]
	answered := m.r.Verb == Resume || m.r.Verb <= RunDue && t.run.asked == ByWords && t.waitsAt == t.head
	line = fmt.Sprint(strings.Join(args(*m, id), " "), []string{"", "  [the agent fails]", "  [rate limit]"}[m.outcome])
	m.end = h.interrupted(&m.cut, m.outcome, !answered || t.listed != active, args(*m, id)...)
	return fmt.Sprintf("%s%s: exit %d %s", line, m.cut, m.end.code, m.end.refused())
}

// loses removes the line of a child that has ended.
func (h *history) loses() {
	for i, child := range h.kids {
		unsure := func(g guess) bool { return g.threads[i+1].hasEnded != h.guesses[0].threads[i+1].hasEnded }
		if h.guesses[0].threads[i+1].hasEnded && !slices.ContainsFunc(h.guesses, unsure) {
			h.damaged = true
			h.without("history.jsonl", child)
		}
	}
}

// args returns the command line.
func args(m move, id string) []string {
	words := func(verb string, more ...string) []string {
		all := append([]string{"thread", verb, id, "--format", "json"}, more...)
		if m.r.KeepFiles {
			all = append(all, "--keep-files")
		}
		if m.r.Discard {
			all = append(all, "--discard-result")
		}
		return all
	}
	prompt := fmt.Sprint("words ", m.words)
	switch m.r.Verb {
	case Step:
		switch {
		case m.toTheEnd:
			return words("step", "--until-end")
		case m.r.Wake:
			return words("resume", "-c", "1")
		}
		return words("step")
	case RunDue:
		return []string{"run-due", "--format", "json"}
	case Resume:
		return words("resume", "-p", prompt, "-c", "1")
	case Poke:
		if m.r.Earlier {
			id += "@-2"
		}
		return words("retry", "-p", prompt)
	case Answer:
		return words("answer", "--set", "$status=next")
	case Undo:
		return words("undo")
	case Redo:
		return words("redo")
	case Retry:
		id += "/k"
		return words("retry")
	case Stop:
		return words("stop")
	case Kill:
		return words("kill")
	}
	return nil
}

// hold returns why no state of the model explains the observation.
func (h *history) hold(m move) (why string) {
	h.t.Helper()
	all := h.look()
	for i := range all[1:] {
		h.unsure = append(h.unsure, false)
		laid := m.end.code == 0 && (m.child == i+1 || m.toTheEnd) && all[i+1].listed == active
		h.unsure[i] = m.cut.hit && m.cut.traced() || h.unsure[i] && !laid
		all[i+1].unsure = h.unsure[i]
	}
	next, reasons := follow(h.guesses, m, all, Variant{})
	if len(next) == 0 {
		lines := []string{"last: " + m.end.String(), "seen:"}
		for _, s := range all {
			lines = append(lines, "  "+s.String())
		}
		lines = append(append(lines, fmt.Sprintf("expected, of %d worlds before:", len(h.guesses))), reasons...)
		if known := variants(h.guesses, m, all); known != "" {
			lines = append(lines, "explained by: "+known)
		}
		return strings.Join(lines, "\n")
	}
	h.guesses, h.seen = next, all
	for _, s := range all {
		made := func(l link) bool { return l.tree == "" && l.by != "" }
		h.over = h.over || m.cut.by == "ENOSPC" && m.cut.hit && slices.ContainsFunc(s.chain, made)
	}
	return ""
}
