// Package decidetest models the effects of package decide's actions on everything durable and on the running
// agents. A search over histories of requests, kills and disk errors looks for a history that loses or
// repeats finished work, or that runs a step on the wrong files.
package decidetest

import (
	"slices"

	//lint:ignore ST1001 the model is about its words alone
	. "github.com/united-workforce/uwf/engine/internal/decide"
)

// world is the durable state and the set of running agents. Nodes are identified by numbers.
type world struct {
	nodes   []node
	threads []thread // the first one receives the requests; the others are its children
	limited bool     // the agents' account is limited
	// Fields used only by the checks.
	fault  string // first violated property
	full   bool   // the disk is full, so the next restore fails
	failed bool   // a restore has failed
}

// node is a start or a step. It is immutable except for attempts, which are facts.
type node struct {
	prev, at int // at is the number of roles that have been played
	asks     bool
	by       Player
	tree     int  // the files after it
	attempts int  // attempts of the next role's children
	fails    bool // a failure step with an edge to $FAIL
	found    bool // its agent started with the files left by another, which an undo restores
}

// listing is the entry of a thread in the heads.
type listing int

const (
	absent listing = iota
	active
	completed
	failed // at $FAIL
	cancelled
)

// torn stands for files that a restore has written only in part.
const torn = -2

type thread struct {
	// One letter per role: a, q: an agent, and one that asks; c: a command; p: a person; k, K, P: a child,
	// one that asks, and one that is a person's form; e, f: an agent whose $error leads to the next role, or
	// to $FAIL; x: a child under onFailure: continue; X: a child of a role whose $error leads to the next
	// role.
	roles       string
	of, attempt int // for a child: the parent's head and the attempt, which determine its ID
	listed      listing
	head, files int
	dirty       bool // an unfinished agent has changed the files
	laid        int  // the undone step, while the files are those that its agent started with; 0: none
	undone      []int
	run         record
	intent      intent
	waitsAt     int // head at which it waits for the provider; -1: none
	keptAt      int // head at which the files were left unchanged; -1: none
	// Fields used only by the checks.
	hasEnded, replayed bool
	exhausted          int // head at which the retries were exhausted; -1: none
	paid, finished     int // number of its agents that have started, and that have left a step
}

type record struct {
	state  Run
	head   int
	asked  Asked
	words  int
	keep   bool // a poke with the current files
	alive  bool
	found  bool // see node
	result int  // 0: none
}

type intent struct {
	on, prepared, keep bool
	head, to, attempts int
	undone             []int
}

// effect is one atomic durable change.
type effect func(*world)

// outcome is the end of an agent's run.
type outcome int

const (
	finishes outcome = iota
	fails            // and its retries are exhausted
	limited          // its provider refuses
)

func (w *world) clone() *world {
	c := *w
	c.nodes, c.threads = slices.Clone(w.nodes), slices.Clone(w.threads)
	return &c // slices in threads are never modified in place
}

func (w *world) broken(what string) {
	if w.fault == "" {
		w.fault = what
	}
}

func (w *world) atEnd(t *thread) bool {
	h := w.nodes[t.head]
	return h.fails || h.at == len(t.roles) && !h.asks
}

// end archives a thread that is at its end.
func (w *world) end(t *thread) {
	if !w.atEnd(t) {
		return
	}
	t.listed, t.hasEnded = completed, true
	if w.nodes[t.head].fails {
		t.listed = failed
	}
}

// open reports whether a thread has unfinished work.
func (w *world) open(i int) bool {
	t, due := &w.threads[i], false
	if t.run.state == Exhausted && t.run.head == t.head && t.run.asked != ByPoke {
		_, due = w.failure(i, t.run.asked)
	}
	return t.intent.on || t.run.state == InFlight && t.run.head == t.head || due
}

// ended reports whether a thread can make no progress by itself.
func (w *world) ended(i int) bool {
	t := &w.threads[i]
	return t.listed == cancelled || (t.listed == completed || t.listed == failed) && !w.open(i)
}

// inChain reports whether a thread already has a node.
func (w *world) inChain(t *thread, n int) bool {
	for at := t.head; ; at = w.nodes[at].prev {
		if at == n {
			return true
		}
		if w.nodes[at].by == NoPlayer {
			return false
		}
	}
}

// waits reports whether a thread has a pending result.
func (w *world) waits(t *thread) bool {
	return t.run.state == InFlight && t.run.head == t.head && t.run.result > 0 && !w.inChain(t, t.run.result)
}

// child returns the index of the child that a thread's head requires; 0: none.
func (w *world) child(t *thread) int {
	for i := 1; i < len(w.threads); i++ {
		if w.threads[i].of == t.head && w.threads[i].attempt == w.nodes[t.head].attempts {
			return i
		}
	}
	return 0
}

func playerOf(role byte) Player {
	switch role {
	case 'c':
		return ByCommand
	case 'p':
		return ByPerson
	case 'k', 'K', 'P', 'x', 'X':
		return ByChildren
	}
	return ByAgent
}

// answer returns the step that a finished run makes.
func (w *world) answer(t *thread, asked Asked) node {
	h := w.nodes[t.head]
	at := h.at
	switch {
	case asked == ByPoke:
		return node{prev: h.prev, at: h.at, asks: t.roles[h.at-1] == 'q', by: h.by}
	case asked == ByWords && t.listed != active:
		at = 0
	case asked == ByWords:
		return node{prev: t.head, at: h.at, by: h.by}
	}
	return node{prev: t.head, at: at + 1, by: playerOf(t.roles[at]), asks: t.roles[at] == 'q'}
}

// failure returns the step that a run with exhausted retries makes, if any.
func (w *world) failure(i int, asked Asked) (n node, ok bool) {
	t := &w.threads[i]
	n = w.answer(t, asked)
	role := t.roles[n.at-1]
	ofParent := i > 0 && (w.threads[0].policy(w, t) == 'x' || w.threads[0].policy(w, t) == 'X')
	n.asks, n.fails = false, role == 'f' || ofParent
	return n, ofParent || role == 'e' || role == 'f' || role == 'X'
}

// policy returns the parent's role that a child belongs to.
func (t *thread) policy(w *world, child *thread) byte { return t.roles[w.nodes[child.of].at] }

// plan returns the effects of an action, in order. A kill can occur between any two.
func (w *world) plan(i int, a Action, r Request, words int, o outcome, v Variant) []effect {
	t := &w.threads[i]
	head, prev := t.head, w.nodes[t.head].prev
	on := func(do func(*world, *thread)) effect { return func(w *world) { do(w, &w.threads[i]) } }
	set := func(do func(*thread)) effect { return func(w *world) { do(&w.threads[i]) } }

	keep := r.KeepFiles && r.Verb == Poke || t.run.keep && a.Kind == Replace && r.Verb != Poke

	restore := func(n int) effect { return w.restore(i, n, v) }
	prepare := set(func(t *thread) { t.intent = intent{on: true, prepared: true, head: head} })
	heads := set(func(t *thread) { t.keptAt = -1 }) // the files are the head's again
	drop := set(func(t *thread) { t.intent = intent{} })
	stopChildren := func(w *world) {
		for k := range w.threads[1:] {
			if i == 0 {
				w.stop(k + 1)
			}
		}
	}
	closed := func(s Run) effect {
		return on(func(w *world, t *thread) {
			if w.waits(t) && !r.Discard {
				w.broken("a finished result is lost")
			}
			t.run.state = s
			if s == Exhausted && t.run.asked != ByPoke {
				if _, ok := w.failure(i, t.run.asked); ok {
					t.exhausted = t.head
				}
			}
		})
	}
	pass := set(func(t *thread) {
		if t.run.state == InFlight {
			t.run.state = Ended
		}
	})
	openRun := func(asked Asked) effect {
		return on(func(w *world, t *thread) {
			if w.waits(t) && !r.Discard {
				w.broken("a finished result is lost")
			}
			t.run = record{state: InFlight, head: t.head, asked: asked, words: words, keep: keep}
		})
	}
	start := func(follows int, asked Asked) effect {
		return on(func(w *world, t *thread) { w.startAgent(i, follows, asked, r) })
	}
	submit := func(n node, files bool) effect {
		return on(func(w *world, t *thread) {
			n := n
			if id := len(w.nodes); files {
				n.tree, t.files = id, id
			} else {
				n.tree = t.files
			}
			n.found = t.run.found
			w.nodes = append(w.nodes, n)
			t.run.result, t.run.alive, t.dirty = len(w.nodes)-1, false, false
			if t.run.asked != ByAnswer && t.run.asked != ByJoin {
				t.finished++
				w.limited = false // it asked the provider
			}
		})
	}
	arrive := w.arrive(i)
	fail := func(asked Asked) []effect {
		n, ok := w.failure(i, asked)
		if !ok || asked == ByPoke && !v.PokeMakesFailure {
			return nil
		}
		return w.fail(i, n, v)
	}
	wait := set(func(t *thread) { t.waitsAt = head })
	after := func(before []effect, asked Asked, back ...effect) []effect {
		dead := set(func(t *thread) { t.run.alive = false })
		switch o {
		case fails:
			return slices.Concat(before, []effect{dead, closed(Exhausted)}, back, fail(asked))
		case limited:
			note := func(w *world) { w.limited = true }
			return slices.Concat(before, []effect{dead, note, closed(Errored)}, back, []effect{wait})
		}
		return slices.Concat(before, []effect{submit(w.answer(t, asked), true)}, arrive)
	}

	switch a.Kind {
	case RunAgent, RunCommand:
		return after([]effect{openRun(ByGraph), start(head, ByGraph)}, ByGraph)
	case RunAsked:
		return after([]effect{openRun(ByWords), start(head, ByWords)}, ByWords)
	case Replace:
		before := []effect{prepare, stopChildren, w.before(i, head, v), openRun(ByPoke), start(prev, ByPoke)}
		back := []effect{restore(head), heads, drop}
		switch {
		case keep:
			before, back = []effect{openRun(ByPoke), stopChildren, start(head, ByPoke)}, nil
		case v.PokeWithoutIntent:
			before, back = before[1:], nil
		}
		return after(before, ByPoke, back...)
	case Queue:
		asked := ByWords
		if r.Verb == Poke {
			asked = ByPoke
		}
		return []effect{openRun(asked), closed(Errored), wait}
	case Adopt:
		return arrive
	case Reject, Close:
		return []effect{closed(Ended)}
	case DiscardResult:
		if v.DiscardKeepsFiles {
			return []effect{closed(Ended)}
		}
		return []effect{prepare, closed(Ended), restore(head), heads, drop}
	case RecordAnswer:
		return slices.Concat([]effect{openRun(ByAnswer), submit(w.answer(t, ByAnswer), false)}, arrive)
	case RecordFailure:
		n, _ := w.failure(i, t.run.asked)
		return w.fail(i, n, v)
	case Join:
		if k := &w.threads[w.child(t)]; k.listed == failed && t.roles[w.nodes[head].at] == 'X' {
			return slices.Concat([]effect{openRun(ByJoin), closed(Exhausted)}, fail(ByJoin))
		}
		lay := on(func(w *world, t *thread) {
			k := &w.threads[w.child(t)]
			switch {
			case t.files != w.nodes[t.head].tree && t.keptAt != t.head:
				w.broken("children are merged into files that are not the head's")
			case k.replayed:
				w.broken("a child that was to be played again is joined")
			case !w.ended(w.child(t)):
				w.broken("a child is joined while something of it is under way")
			}
			t.files = -1 // the merged tree
			w.tear(i, v)
		})
		return slices.Concat([]effect{openRun(ByJoin), prepare, lay, submit(w.answer(t, ByJoin), true)}, arrive)
	case CreateChildren:
		return []effect{func(w *world) { w.addChild() }}
	case RaiseAttempt:
		child := w.child(t)
		stop := func(w *world) { w.stop(child) } // otherwise its agent would work on the files of the next attempt
		raise := func(w *world) { w.nodes[head].attempts++ }
		kill := func(w *world) {
			w.stop(child)
			if k := &w.threads[child]; k.listed == active {
				k.listed, k.replayed = cancelled, true
			}
		}
		if v.CancelThenRaise {
			return []effect{kill, raise}
		}
		if v.RaiseThenStop {
			return []effect{raise, kill}
		}
		return []effect{stop, raise, kill}
	case Archive:
		return []effect{on(func(w *world, t *thread) { w.end(t) })}
	case Cancel:
		return []effect{
			func(w *world) {
				for k := range w.threads[1:] {
					if i == 0 && w.threads[k+1].listed == active {
						w.threads[k+1].listed = cancelled
					}
				}
			},
			set(func(t *thread) { t.listed, t.hasEnded = cancelled, true }),
		}
	case Move:
		in := intent{on: true, keep: r.KeepFiles, head: head, to: prev, undone: []int{head}}
		if r.Verb == Redo {
			in.to, in.undone = t.undone[0], t.undone[1:]
		} else if len(t.undone) > 0 && w.nodes[t.undone[0]].prev == head {
			in.undone = append(in.undone, t.undone...)
		}
		in.attempts = w.nodes[in.to].attempts
		if r.Verb != Redo && w.nodes[head].by == ByChildren {
			in.attempts++ // retries all its children
		}
		begin := set(func(t *thread) { t.intent = in })
		if v.FilesThenHead {
			begin = func(*world) {}
		}
		// Children check the intent before they start, so none starts after they were stopped.
		return slices.Concat([]effect{pass, begin, stopChildren}, w.finish(i, in, v))
	case Finish:
		if t.intent.prepared {
			return []effect{drop}
		}
		return slices.Concat([]effect{stopChildren}, w.finish(i, t.intent, v))
	case TakeBack:
		return []effect{restore(head), heads, drop}
	case LeaveFiles:
		if in := t.intent; !in.prepared {
			in.keep = true
			return slices.Concat([]effect{stopChildren}, w.finish(i, in, v))
		}
		return []effect{set(func(t *thread) { t.keep(head) }), drop}
	case Unpark:
		return []effect{set(func(t *thread) { t.waitsAt = -1 })}
	case StopAgent:
		return []effect{func(w *world) { w.stop(i) }, stopChildren}
	}
	return nil
}

// restore writes the files of a node. Other files that it finds are saved under a rescue ref.
func (w *world) restore(i, n int, v Variant) effect {
	return func(w *world) {
		t := &w.threads[i]
		t.files, t.dirty, t.laid = w.nodes[n].tree, false, 0
		w.tear(i, v)
	}
}

// before writes the files that the agent of a step started with.
func (w *world) before(i, n int, v Variant) effect {
	lay := w.restore(i, w.nodes[n].prev, v)
	return func(w *world) {
		lay(w)
		w.threads[i].dirty, w.threads[i].laid = w.nodes[n].found, n
	}
}

// keep records that the files are left unchanged.
func (t *thread) keep(head int) {
	if t.keptAt = head; t.dirty {
		t.files, t.dirty = -1, false
	}
}

// tear leaves the files partly written if the disk is full.
func (w *world) tear(i int, v Variant) {
	if t := &w.threads[i]; w.full {
		w.failed, t.files = true, torn
		if v.IntentDroppedEarly {
			t.intent = intent{}
		}
	}
}

// arrive returns the effects after a result, from a run or adopted.
func (w *world) arrive(i int) []effect {
	on := func(do func(*world, *thread)) effect { return func(w *world) { do(w, &w.threads[i]) } }
	return []effect{
		on(func(_ *world, t *thread) { t.reopen() }),
		on(func(w *world, t *thread) {
			if p := w.nodes[t.run.result].prev; p != t.head && !(t.run.asked == ByPoke && p == w.nodes[t.head].prev) {
				w.broken("a step does not follow the head")
			}
			t.head = t.run.result
		}),
		on(func(_ *world, t *thread) { t.run.state = Ended }),
		on(func(_ *world, t *thread) { t.intent = intent{} }),
		on(func(_ *world, t *thread) { t.waitsAt = -1 }),
		on(func(w *world, t *thread) { w.end(t) }),
	}
}

// fail returns the effects that add a failure step. The record stays exhausted until the head has moved.
func (w *world) fail(i int, n node, v Variant) []effect {
	on := func(do func(*world, *thread)) effect { return func(w *world) { do(w, &w.threads[i]) } }
	all := []effect{
		on(func(_ *world, t *thread) { t.reopen() }),
		on(func(w *world, t *thread) { // the node with the files as the agent left them, then the head
			if t.run.asked == ByPoke {
				w.broken("a poke that fails makes a step")
			}
			n := n
			if n.tree = w.nodes[t.head].tree; t.dirty || t.files != n.tree {
				n.tree = len(w.nodes)
			}
			w.nodes = append(w.nodes, n)
			t.head, t.files, t.dirty = len(w.nodes)-1, n.tree, false
		}),
	}
	if v.FailureReopensRun {
		all = slices.Insert(all, 0, on(func(_ *world, t *thread) { t.run.state, t.run.result = InFlight, 0 }))
	}
	return append(all,
		on(func(_ *world, t *thread) { t.run.state = Ended }),
		on(func(_ *world, t *thread) { t.waitsAt = -1 }),
		on(func(w *world, t *thread) { w.end(t) }))
}

func (t *thread) reopen() {
	if t.listed == completed || t.listed == failed {
		t.listed = active
	}
}

// finish returns the remaining effects of a move. Each can be repeated.
func (w *world) finish(i int, in intent, v Variant) []effect {
	on := func(do func(*world, *thread)) effect { return func(w *world) { do(w, &w.threads[i]) } }
	files := w.restore(i, in.to, v)
	if w.nodes[in.head].prev == in.to && w.nodes[in.head].by != NoPlayer {
		files = w.before(i, in.head, v)
	}
	all := []effect{
		files,
		on(func(w *world, t *thread) { // a single change of the facts
			t.undone, w.nodes[in.to].attempts, t.keptAt = in.undone, in.attempts, -1
			if in.keep {
				t.keep(in.to)
			}
			if !v.LimitedByThread {
				t.waitsAt = -1
			}
		}),
		on(func(_ *world, t *thread) { t.reopen() }),
		on(func(_ *world, t *thread) { t.head, t.hasEnded, t.exhausted = in.to, false, -1 }),
		on(func(_ *world, t *thread) { t.intent = intent{} }),
		on(func(w *world, t *thread) { w.end(t) }),
	}
	if in.keep {
		return all[1:]
	}
	return all
}

func (w *world) stop(i int) {
	if t := &w.threads[i]; t.run.alive {
		t.run.alive, t.run.state = false, Ended
	}
}

func (w *world) addChild() {
	t := &w.threads[0]
	if i := w.child(t); i > 0 {
		k := &w.threads[i]
		if k.hasEnded {
			w.broken("a child that has ended is started again")
		}
		k.listed, k.head, k.run = active, k.start(w), record{}
		return
	}
	id := len(w.nodes)
	w.nodes = append(w.nodes, node{by: NoPlayer, tree: id})
	roles := "a"
	switch t.roles[w.nodes[t.head].at] {
	case 'K':
		roles = "q"
	case 'P':
		roles = "p"
	}
	w.threads = append(w.threads, thread{
		roles: roles, of: t.head, attempt: w.nodes[t.head].attempts, listed: active, head: id, files: id,
		waitsAt: -1, keptAt: -1, exhausted: -1,
	})
}

func (t *thread) start(w *world) int {
	at := t.head
	for w.nodes[at].by != NoPlayer {
		at = w.nodes[at].prev
	}
	return at
}

// startAgent starts an agent, which costs money, and checks the properties that must hold.
func (w *world) startAgent(i, follows int, asked Asked, r Request) {
	t := &w.threads[i]
	again := t.exhausted == t.head && asked != ByPoke
	switch {
	case t.listed == cancelled, t.listed != active && asked != ByWords && asked != ByPoke:
		w.broken("an ended thread runs")
	case i > 0 && t.hasEnded && asked == ByGraph:
		w.broken("a child that has ended is paid again")
	case i > 0 && w.poked():
		w.broken("a child is paid while a poke of its parent is under way")
	case i > 0 && w.waits(&w.threads[0]):
		w.broken("a child is paid while its parent's finished result waits")
	case i > 0 && w.threads[0].intent.on:
		w.broken("a child is paid while its parent is on its way to another step")
	case i > 0 && (w.unwanted(t) || w.threads[0].listed == cancelled):
		w.broken("a child that nobody wants is paid")
	case i == 0 && slices.ContainsFunc(w.threads[1:], func(k thread) bool { return k.run.alive }):
		w.broken("an agent starts while an agent of a child is alive")
	case i > 0 && slices.ContainsFunc(w.threads[1:], func(k thread) bool { return k.run.alive && w.unwanted(&k) }):
		w.broken("an agent starts while the agent of an earlier attempt is alive")
	case w.limited && !r.Wake:
		w.broken("a provider is asked that grants no more")
	case again:
		w.broken("a role is tried again whose failure has an edge")
	case t.files != w.nodes[follows].tree && t.keptAt != t.head:
		w.broken("an agent starts among files that are not those of the step it follows")
	}
	if asked == ByPoke {
		follows = w.nodes[t.head].prev
	}
	t.laid, t.run.found = 0, t.dirty || t.files != w.nodes[follows].tree
	t.run.alive, t.dirty, t.paid = true, true, t.paid+1
}
