//go:build unix

package decidetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/united-workforce/uwf/engine/internal/decide"
)

// guess is a state of the model that explains all observations so far.
type guess struct {
	*world
	names map[int]string // hashes of the observed nodes
	trees map[int]string // also hashes, of trees of files
}

// move describes a command to the model.
type move struct {
	command
	name     string
	child    int // the thread in the request
	toTheEnd bool
	outcome  outcome
	cut      cut
	end      exited
}

// after returns the guesses after a command. Each is then compared with the observation.
func (g guess) after(m move, v Variant) (all []guess, refused []Code) {
	s := &search{reason: map[Reason]bool{}, only: []outcome{m.outcome}, v: v, scenario: scenario{limits: true}}
	if m.cut.hit && (m.cut.by == "kill all" || m.cut.by == "ENOSPC") {
		s.only = []outcome{m.outcome, fails}
	}
	out := func(w *world, _ int, killed bool, last Action) {
		if killed && !m.cut.hit || !killed && m.cut.hit && !m.cut.traced() {
			return
		}
		settled := last.Reason == "ended" && w.key() != g.key() // the command had an effect
		if !m.cut.hit && !m.end.fits(last, m) && !(settled && m.end.code == 0) {
			refused = append(refused, Code(last.Reason))
			return
		}
		for _, w := range fates(w) {
			all = append(all, guess{w, g.names, g.trees})
		}
	}
	if m.cut.hit { // before anything was done
		out(g.clone(), 0, true, Action{})
	}
	s.request(g.world, m, out)
	return all, refused
}

// fits reports whether the model's last action can cause this exit status.
func (e exited) fits(last Action, m move) bool {
	const suspended = 6
	switch {
	case m.event != nil || m.r.Verb == RunDue || m.outcome != finishes:
		return true
	case m.r.Verb == Kill && last.Kind == StopAgent: // the thread has ended
		return true
	case m.r.Wake && last.Kind == Report: // the command line refuses a question without an answer
		return true
	case last.Kind == Refuse:
		return e.code != 0
	}
	return e.code == 0 || e.code == suspended
}

// request applies a command to the model.
func (s *search) request(w *world, m move, out emit) {
	switch {
	case m.event != nil || m.r.Verb == RunDue:
		s.carryOut(w, m.command, out)
	case m.child > 0:
		if m.child < len(w.threads) {
			s.exec(w, m.child, m.r, m.words, 12, out)
		}
	case m.toTheEnd:
		s.steps(w, m, 8, out)
	default:
		s.exec(w, 0, m.r, m.words, 12, out)
	}
}

// steps applies a request that continues to the end.
func (s *search) steps(w *world, m move, most int, out emit) {
	s.exec(w, 0, m.r, m.words, 12, func(next *world, about int, killed bool, last Action) {
		stays := last.Kind == Refuse || last.Kind == Report || next.key() == w.key()
		ended := next.threads[0].listed != active || about > 0 || last.Kind == HandToChild || next.fault != ""
		failed := next.threads[0].run.state == Errored || next.threads[0].run.state == Exhausted
		if killed || stays || ended || failed || most == 0 {
			out(next, about, killed, last)
			return
		}
		s.steps(next, m, most-1, out)
	})
}

// matches compares a guess with an observation; why is the difference.
func (g guess) matches(all []seen, c cut) (found guess, why string) {
	if g.fault != "" {
		return g, "the model breaks: " + g.fault
	}
	if len(g.threads) != len(all) {
		return g, fmt.Sprintf("%d threads, seen: %d", len(g.threads), len(all))
	}
	found = guess{g.clone(), maps.Clone(g.names), maps.Clone(g.trees)}
	for i, s := range all {
		if why := found.thread(i, s, c); why != "" {
			return g, fmt.Sprintf("thread %d: %s", i, why)
		}
	}
	return found, ""
}

// thread compares one thread with an observation.
func (g guess) thread(i int, s seen, c cut) (why string) {
	t := &g.threads[i]
	switch {
	case t.listed != s.listed:
		return fmt.Sprintf("listed %d, seen: %d", t.listed, s.listed)
	case t.run.alive != s.alive:
		return fmt.Sprintf("agent alive: %t, seen: %t", t.run.alive, s.alive)
	case t.paid != s.paid:
		return fmt.Sprintf("paid %d, seen: %d", t.paid, s.paid)
	case t.finished != s.finished && !(c.by == "kill all" && t.finished == s.finished+1):
		return fmt.Sprintf("finished %d, seen: %d", t.finished, s.finished)
	case t.listed == absent:
		return ""
	}
	t.finished = s.finished
	if why := g.chain(t, s.chain); why != "" {
		return why
	}
	if n := t.run.result; g.waits(t) && s.last != "" {
		if why := g.name(n, s.last); why != "" {
			return why
		}
	}
	return g.laid(t, s)
}

// chain compares a chain with the model's, and names its nodes.
func (g guess) chain(t *thread, chain []link) (why string) {
	at := t.head
	for i, l := range chain {
		if why := g.name(at, l.hash); why != "" {
			return why
		}
		n := g.nodes[at]
		if start := n.by == NoPlayer; start != (i == len(chain)-1) {
			return fmt.Sprintf("the chain has %d nodes", len(chain))
		}
		if l.tree != "" && n.tree >= 0 {
			if why := g.tree(n.tree, l.tree); why != "" {
				return "node " + l.hash + ": " + why
			}
		}
		at = n.prev
	}
	return ""
}

func (g guess) name(n int, hash string) (why string) {
	if known := g.names[n]; known != "" && known != hash {
		return fmt.Sprintf("node %d is %.6s, seen: %.6s", n, known, hash)
	}
	for other, known := range g.names {
		if known == hash && other != n {
			return fmt.Sprintf("node %d ≠ %d, seen: %.6s", n, other, hash)
		}
	}
	g.names[n] = hash
	return ""
}

func (g guess) tree(n int, tree string) (why string) {
	if known := g.trees[n]; known != "" && known != tree {
		return fmt.Sprintf("files of %d, %.6s, seen: %.6s", n, known, tree)
	}
	g.trees[n] = tree
	return ""
}

// laid compares the files of a thread with the model's.
func (g guess) laid(t *thread, s seen) (why string) {
	switch {
	case s.files == "" || t.files < 0 || s.unsure:
		return ""
	case t.dirty:
		t.dirty = g.trees[t.files] != s.files // killed, perhaps before its start
		return ""
	}
	return g.tree(t.files, s.files)
}

// identity returns a key that is equal for guesses whose differences can no longer be observed.
func (g guess) identity() string {
	b := g.key()
	for _, t := range g.threads {
		b += fmt.Sprint(" ", t.paid, t.finished)
		for _, n := range append([]int{t.head, t.run.result, t.intent.to}, t.undone...) {
			b += " " + g.names[n]
		}
	}
	return b
}

// follow returns the guesses that explain the observation after a command, and the reasons against the
// others.
func follow(before []guess, m move, all []seen, v Variant) (found []guess, reasons []string) {
	known, why := map[string]bool{}, map[string]bool{}
	for _, g := range before {
		next, refused := g.after(m, v)
		for _, code := range refused {
			why["exit "+fmt.Sprint(m.end.code)+", and the model: "+string(code)] = true
		}
		for _, g := range next {
			if v != (Variant{}) {
				g.fault = "" // expected
			}
			g, not := g.matches(all, m.cut)
			if not != "" {
				why[not] = true
				continue
			}
			if id := g.identity(); !known[id] {
				known[id] = true
				found = append(found, g)
			}
		}
	}
	return found, slices.Sorted(maps.Keys(why))
}

// variants returns the known faults that would explain the observation.
func variants(before []guess, m move, all []seen) string {
	var names []string
	for name, v := range faults() {
		if found, _ := follow(before, m, all, v); len(found) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func faults() map[string]Variant {
	return map[string]Variant{
		"ResultByIndex": {ResultByIndex: true}, "FilesThenHead": {FilesThenHead: true}, "AbsentIsMissing": {AbsentIsMissing: true},
		"PokeWithoutIntent": {PokeWithoutIntent: true}, "CancelThenRaise": {CancelThenRaise: true}, "LimitedByThread": {LimitedByThread: true},
		"WordsPastResult": {WordsPastResult: true, ChildByName: true}, "DiscardKeepsFiles": {DiscardKeepsFiles: true},
		"DueWhilePoked": {DueWhilePoked: true}, "ChildByName": {ChildByName: true}, "EndedWhilePoked": {EndedWhilePoked: true}, "EndedIsDeaf": {EndedIsDeaf: true},
	}
}
