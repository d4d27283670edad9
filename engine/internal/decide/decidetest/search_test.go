package decidetest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/united-workforce/uwf/engine/internal/decide"
)

// A command is one line of a history: a request with a person's answer, or an event.
type command struct {
	r     Request
	words int
	event func(*world)
	child bool // the request is for a child
}

// toTheEnd is the command that continues until a person is needed.
const toTheEnd = "to the end"

var commands = map[string]command{
	"step":                  {r: Request{Verb: Step}},
	"step --discard-result": {r: Request{Verb: Step, Discard: true}},
	"step --wake":           {r: Request{Verb: Step, Wake: true}},
	toTheEnd:                {r: Request{Verb: Step, ToEnd: true}},
	"run-due":               {r: Request{Verb: RunDue}},
	"resume x":              {r: Request{Verb: Resume, Words: true}, words: 1},
	"resume y":              {r: Request{Verb: Resume, Words: true}, words: 2},
	"poke x":                {r: Request{Verb: Poke}, words: 1},
	"poke y":                {r: Request{Verb: Poke}, words: 2},
	"poke earlier":          {r: Request{Verb: Poke, Earlier: true}, words: 1},
	"answer":                {r: Request{Verb: Answer}},
	"undo":                  {r: Request{Verb: Undo}},
	"redo":                  {r: Request{Verb: Redo}},
	"retry":                 {r: Request{Verb: Retry}},
	"stop":                  {r: Request{Verb: Stop}},
	"kill":                  {r: Request{Verb: Kill}},
	"fork":                  {r: Request{Verb: ForkAt}},
	"undo --keep-files":     {r: Request{Verb: Undo, KeepFiles: true}},
	"redo --keep-files":     {r: Request{Verb: Redo, KeepFiles: true}},
	"poke --keep-files":     {r: Request{Verb: Poke, KeepFiles: true}, words: 3},
	"step --keep-files":     {r: Request{Verb: Step, KeepFiles: true}},
	"child step":            {child: true, r: Request{Verb: Step}},
	"child resume x":        {child: true, r: Request{Verb: Resume, Words: true}, words: 1},
	"child answer":          {child: true, r: Request{Verb: Answer}},
	"child undo":            {child: true, r: Request{Verb: Undo}},
	"child redo":            {child: true, r: Request{Verb: Redo}},
	"child poke x":          {child: true, r: Request{Verb: Poke}, words: 1},
	"child stop":            {child: true, r: Request{Verb: Stop}},
	"child kill":            {child: true, r: Request{Verb: Kill}},
	"time passes":           {event: func(w *world) { w.limited = false }},
	"a line is lost": {event: func(w *world) {
		for i := range w.threads[1:] {
			if k := &w.threads[i+1]; k.hasEnded {
				k.listed = absent
			}
		}
	}},
}

// scenario is a workflow with applicable commands.
type scenario struct {
	name, roles string
	depth       int
	limits      bool // agents may reach a provider's limit
	commands    string
}

var scenarios = []scenario{
	{"agents", "aa", 5, false, "step; undo; redo; poke x; poke earlier; resume x; answer; stop; run-due; fork"},
	{"a person's form", "ap", 5, false, "step; answer; poke x; poke y; poke earlier; resume x; undo; redo; " +
		"stop; run-due"},
	{"a question", "qa", 5, false, "step; resume x; resume y; poke x; poke earlier; answer; undo; redo; " +
		"stop; run-due"},
	{"a completed thread", "a", 5, false, "step; step --discard-result; resume x; poke x; answer; undo; " +
		"redo; stop; run-due; kill"},
	{"a command", "ca", 5, false, "step; resume x; poke x; poke earlier; undo; redo; stop; run-due"},
	{"children", "ak", 5, false, "to the end; step; poke x; undo; redo; retry; stop; kill; run-due; " +
		"a line is lost"},
	{"children that ask", "aK", 5, false, "to the end; resume x; poke x; undo; redo; stop; run-due"},
	{"a child by name", "ak", 5, false, "to the end; poke x; undo; child step; child poke x; child undo; " +
		"child redo; child stop; kill"},
	{"a child by name, and a retry", "k", 5, false, "to the end; retry; undo; child step; child poke x; " +
		"child undo"},
	{"a child that asks, by name", "aK", 5, false, "to the end; poke x; undo; child step; child resume x; " +
		"child answer; child kill"},
	{"a form of a child, by name", "P", 5, false, "to the end; answer; undo; retry; run-due; child answer; " +
		"child undo; child redo"},
	{"a provider's limit", "aq", 5, true, "step; step --wake; resume x; poke x; poke earlier; undo; redo; " +
		"run-due; time passes"},
	{"a provider's limit, and children", "ak", 5, true, "to the end; poke x; undo; run-due; child poke x; " +
		"time passes"},
	{"a failure with an edge", "ea", 5, false, "step; resume x; poke x; poke earlier; undo; redo; stop; run-due"},
	{"an end at $FAIL", "af", 5, false, "step; resume x; poke x; answer; undo; redo; stop; run-due; kill"},
	{"a child that can fail", "x", 5, false, "to the end; undo; run-due; child poke x; child undo; child kill"},
	{"a role that fails with its child", "Xa", 5, false, "to the end; undo; run-due; child poke x; child kill"},
	{"files that cannot be laid", "aa", 5, false, "step; undo; redo; poke x; poke --keep-files; " +
		"undo --keep-files; redo --keep-files; step --keep-files"},
}

func (s scenario) start() *world {
	return &world{nodes: []node{{by: NoPlayer}}, threads: []thread{{
		roles: s.roles, of: -1, listed: active, waitsAt: -1, keptAt: -1, exhausted: -1,
	}}}
}

// search explores all histories of a scenario, with a kill between any two effects.
type search struct {
	scenario
	v      Variant
	only   []outcome // the outcomes of all agents; nil: any
	seen   map[string]bool
	reason map[Reason]bool
	kills  int
	errors int
}

type found struct {
	*world
	history string
}

// after is the state after a command, or after a part of it.
type after struct {
	*world
	about  int // the thread of the last action
	killed bool
	last   Action
}

// run returns the first history that violates a property, or "".
func (s *search) run() string {
	s.seen, s.reason = map[string]bool{}, map[Reason]bool{}
	front := []found{{s.start(), ""}}
	for range s.depth {
		var next []found
		for _, at := range front {
			for name := range strings.SplitSeq(s.commands, "; ") {
				var whole, cut []after
				s.carryOut(at.world, commands[name], func(w *world, about int, killed bool, last Action) {
					if killed {
						cut = append(cut, after{w, about, killed, last})
					} else {
						whole = append(whole, after{w, about, killed, last})
					}
				})
				for _, a := range append(whole, cut...) { // so that a history has no unnecessary kills
					line := at.history + "\n  " + name
					if a.killed {
						line += " (killed)"
					}
					for _, w := range fates(a.world) {
						key := w.key()
						known := s.seen[key]
						if s.checkEnd(w, a.about, a.killed, a.last); !known {
							s.check(w)
						}
						if w.fault != "" {
							return line + "\n  → " + w.fault
						}
						if !known {
							s.seen[key] = true
							next = append(next, found{w, line})
						}
					}
				}
			}
		}
		front = next
	}
	return ""
}

// fates returns the possible states of agents whose engine was killed: each ends well, dies, or lives.
func fates(w *world) []*world {
	all := []*world{w}
	for i := range w.threads {
		if !w.threads[i].run.alive {
			continue
		}
		for _, w := range slices.Clone(all) {
			dies, ends := w.clone(), w.clone()
			dies.threads[i].run.alive = false
			ends.agentEnds(i)
			all = append(all, dies, ends)
		}
	}
	return all
}

// agentEnds lets an agent finish whose engine was killed.
func (w *world) agentEnds(i int) {
	t := &w.threads[i]
	head, id := w.nodes[t.head], len(w.nodes)
	n := node{prev: t.head, at: head.at + 1, tree: id}
	switch {
	case t.run.asked == ByPoke:
		n = node{prev: head.prev, at: head.at, asks: head.asks, by: head.by, tree: id}
	case t.run.asked == ByWords && t.listed == completed:
		n.at, n.by, n.asks = 1, playerOf(t.roles[0]), t.roles[0] == 'q'
	case t.run.asked == ByWords:
		n.at, n.by = head.at, ByAgent
	default:
		n.by, n.asks = playerOf(t.roles[head.at]), t.roles[head.at] == 'q'
	}
	n.found = t.run.found
	w.nodes = append(w.nodes, n)
	t.run.alive, t.run.result, t.files, t.dirty = false, id, id, false
	t.finished++
}

type emit func(w *world, about int, killed bool, last Action)

func (s *search) carryOut(w *world, c command, out emit) {
	if c.event != nil {
		w = w.clone()
		c.event(w)
		out(w, 0, false, Action{Kind: Refuse})
		return
	}
	if c.child {
		for i := range w.threads[1:] { // each can be addressed, whether its parent waits for it or not
			s.exec(w, i+1, c.r, c.words, 12, out)
		}
		return
	}
	s.exec(w, 0, c.r, c.words, 12, func(w *world, about int, killed bool, last Action) {
		out(w, about, killed, last)
		if c.r.Verb != RunDue || killed {
			return
		}
		for i := range w.threads[1:] { // what is due, or was interrupted
			if k := &w.threads[i+1]; k.listed == active || k.listed != absent && !w.ended(i+1) {
				s.exec(w, i+1, c.r, c.words, 12, out)
			}
		}
	})
}

// exec decides and acts until the request is done, and emits every state that a kill may leave.
func (s *search) exec(w *world, i int, r Request, words, fuel int, out emit) {
	t := &w.threads[i]
	f := w.read(i, r, words, s.v)
	a := Decide(f, r)
	if s.v.WordsPastResult && f.Children == Asking && (r.Verb == Resume || r.Verb == Answer) {
		a = Action{Kind: HandToChild}
	}
	s.reason[a.Reason] = true
	switch {
	case fuel == 0:
		w = w.clone()
		w.broken("a request does not end")
		out(w, i, false, a)
		return
	case a.Kind == HandToChild:
		s.exec(w, w.child(t), r, words, fuel-1, out)
		return
	case a.Kind == DriveChildren:
		s.exec(w, w.child(t), Request{Verb: Step, ToEnd: true}, 0, fuel-1, func(w *world, about int, killed bool, last Action) {
			if killed || !w.ended(w.child(&w.threads[i])) { // it asks, has failed, waits, or is busy
				out(w, about, killed, last)
				return
			}
			s.exec(w, i, r, words, fuel-1, out)
		})
		return
	}
	outcomes := []outcome{finishes}
	if slices.Contains([]Kind{RunAgent, RunCommand, RunAsked, Replace}, a.Kind) {
		outcomes = append(outcomes, fails)
		if s.limits {
			outcomes = append(outcomes, limited)
		}
		if s.only != nil {
			outcomes = s.only
		}
	}
	for _, o := range outcomes {
		now := w.clone()
		for _, do := range w.plan(i, a, r, words, o, s.v) {
			s.kills++
			out(now.clone(), i, true, a)
			full := now.clone()
			full.full = true
			if do(full); full.failed { // an error ends the request
				full.full, full.failed = false, false
				s.errors++
				out(full, i, true, a)
			}
			do(now)
			if now.fault != "" {
				out(now, i, false, a)
				return
			}
		}
		if r.Earlier && a.Kind == Move {
			r.Earlier = false
		}
		if a.Again {
			s.exec(now, i, r, words, fuel-1, out)
		} else {
			out(now, i, false, a)
		}
	}
}

// checkEnd fails a state that a command must not end in.
func (s *search) checkEnd(w *world, i int, killed bool, last Action) {
	t := &w.threads[i]
	switch {
	case killed || t.listed == absent || t.listed == cancelled:
	case t.intent.on && !slices.Contains([]Kind{Refuse, Report, StopAgent, Fork, Cancel}, last.Kind):
		w.broken("a command ends and leaves its intent")
	case last.Kind == Queue:
		r := Request{Verb: Step, Wake: true}
		if a := Decide(w.read(i, r, 0, s.v), r); t.run.words == 0 || a.Kind != Replace && a.Kind != RunAsked {
			w.broken("words that were queued are lost")
		}
	}
}

// check fails a state in which a property doesn't hold between two commands.
func (s *search) check(w *world) {
	for i := range w.threads {
		t := &w.threads[i]
		if t.listed == absent || t.listed == cancelled {
			continue
		}
		switch {
		case !t.intent.on && !t.run.alive && !w.waits(t) && t.files != w.nodes[t.head].tree && t.keptAt != t.head:
			w.broken("the files are not those of the head, and nothing says that they will be")
		case t.waitsAt >= 0 && (s.v.LimitedByThread || t.waitsAt == t.head) && t.run.head != t.head:
			w.broken("a thread is rate-limited at a head that waits for no provider")
		}
		wanted := i == 0 || !w.unwanted(t) && !w.open(0)
		if t.intent.on && !t.run.alive && !w.waits(t) && wanted && w.fault == "" {
			s.mustSettle(w, i)
		}
		if t.run.alive && w.fault == "" {
			s.mustStop(w, i)
		}
		if w.waits(t) && !t.run.alive && wanted && w.fault == "" {
			s.mustBeTaken(w, i)
		}
	}
}

// mustBeTaken checks that a step adopts a waiting result.
func (s *search) mustBeTaken(w *world, i int) {
	after, result := w.clone(), w.threads[i].run.result
	for range 6 {
		r := Request{Verb: Step}
		a := Decide(after.read(i, r, 0, s.v), r)
		for _, do := range after.plan(i, a, r, 0, finishes, s.v) {
			do(after)
		}
		if !a.Again {
			break
		}
	}
	if !after.inChain(&after.threads[i], result) {
		w.broken("a step does not take the finished result that waits")
	}
}

// mustSettle checks that --keep-files completes an intent even if no file can be written.
func (s *search) mustSettle(w *world, i int) {
	after, r := w.clone(), Request{Verb: Step, KeepFiles: true}
	after.full = true
	a := Decide(after.read(i, r, 0, s.v), r)
	if s.v.RestoreOrNothing && a.Kind == LeaveFiles {
		a = Action{Kind: Finish}
	}
	for _, do := range after.plan(i, a, r, 0, finishes, s.v) {
		if do(after); after.failed {
			break
		}
	}
	if after.threads[i].intent.on {
		w.broken("a thread whose files cannot be restored cannot continue")
	}
}

// mustStop checks that a running agent can be stopped.
func (s *search) mustStop(w *world, i int) {
	r := Request{Verb: Stop}
	f := w.read(i, r, 0, s.v)
	a := Decide(f, r)
	if s.v.EndedIsDeaf && f.Life != Active {
		a = Action{Kind: Refuse}
	}
	if a.Kind != StopAgent {
		w.broken("an agent runs, and cannot be stopped")
	}
}

// key returns a key that is equal for states that differ only in unreferenced nodes.
func (w *world) key() string {
	known := make([]int, len(w.nodes)) // 0: not numbered yet
	order := make([]int, 0, len(w.nodes))
	number := func(n int) int {
		if n < 0 {
			return n
		}
		return known[n] - 1
	}
	var visit func(n int)
	visit = func(n int) {
		if n < 0 || known[n] > 0 {
			return
		}
		if w.nodes[n].by != NoPlayer {
			visit(w.nodes[n].prev)
		}
		order = append(order, n)
		known[n] = len(order)
		if tree := w.nodes[n].tree; tree != n {
			visit(tree)
		}
	}
	for _, t := range w.threads {
		for _, n := range [...]int{
			t.head, t.files, t.run.head, t.run.result, t.of, t.intent.head, t.intent.to, t.waitsAt, t.keptAt, t.exhausted,
		} {
			visit(n)
		}
		for _, n := range t.undone {
			visit(n)
		}
		for _, n := range t.intent.undone {
			visit(n)
		}
	}
	b := make([]byte, 0, 256)
	add := func(numbers ...int) {
		for _, n := range numbers {
			b = strconv.AppendInt(append(b, ' '), int64(n), 10)
		}
	}
	flag := func(f bool) int {
		if f {
			return 1
		}
		return 0
	}
	list := func(nodes []int) {
		add(-len(nodes))
		for _, n := range nodes {
			add(number(n))
		}
	}
	for _, n := range order {
		x := w.nodes[n]
		if x.by == NoPlayer {
			x.prev = n
		}
		add(number(x.prev), x.at, flag(x.asks), int(x.by), number(x.tree), x.attempts, flag(x.fails), flag(x.found))
	}
	add(flag(w.limited))
	for _, t := range w.threads {
		r, in := t.run, t.intent
		b = append(b, t.roles...)
		add(number(t.of), t.attempt, int(t.listed), number(t.head), number(t.files), flag(t.dirty), number(t.laid))
		add(int(r.state), number(r.head), int(r.asked), r.words, flag(r.alive), flag(r.found), number(r.result))
		add(flag(in.on), flag(in.prepared), flag(in.keep), number(in.head), number(in.to), in.attempts)
		add(number(t.waitsAt), number(t.keptAt), number(t.exhausted), flag(t.hasEnded), flag(t.replayed))
		list(t.undone)
		list(in.undone)
	}
	return string(b)
}

// TestHistories explores the histories of all scenarios.
func TestHistories(t *testing.T) {
	states, kills, errors, reasons := 0, 0, 0, map[Reason]bool{}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			s := search{scenario: sc}
			if history := s.run(); history != "" {
				t.Errorf("%s:%s", sc.name, history)
			}
			t.Logf("%d states, %d kills, %d errors", len(s.seen), s.kills, s.errors)
			states, kills, errors = states+len(s.seen), kills+s.kills, errors+s.errors
			maps.Copy(reasons, s.reason)
		})
	}
	t.Logf("%d scenarios, %d states, %d kills, %d errors, %d rows", len(scenarios), states, kills, errors, len(reasons))
}

// TestFaultsAreFound enables one fault at a time. The search must find each.
func TestFaultsAreFound(t *testing.T) {
	for _, fault := range []struct {
		name, in string
		v        Variant
	}{
		{"known 1: a poke's result, then an answer", "a person's form", Variant{ResultByIndex: true}},
		{"known 1: a poke's result, then a resume", "a question", Variant{ResultByIndex: true}},
		{"known 2: undo moves files, then the head", "agents", Variant{FilesThenHead: true}},
		{"known 3: a child that no list has", "children", Variant{AbsentIsMissing: true}},
		{"new 1: a poke that fails", "agents", Variant{PokeWithoutIntent: true}},
		{"new 2: a retry, cut off", "children", Variant{CancelThenRaise: true}},
		{"new 3: undo of a thread that waits for a provider", "a provider's limit", Variant{LimitedByThread: true}},
		{"new 4: words for a child, and a poke that waits", "children that ask", Variant{WordsPastResult: true, ChildByName: true}},
		{"new 5: run-due while a thread is being poked", "children", Variant{DueWhilePoked: true}},
		{"new 6: a result that is discarded", "a completed thread", Variant{DiscardKeepsFiles: true}},
		{"new 7: a child by name", "a child by name", Variant{ChildByName: true}},
		{"new 7: a child by name, and a retry", "a child by name, and a retry", Variant{ChildByName: true}},
		{"new 7: words for a child by name", "a child that asks, by name", Variant{ChildByName: true}},
		{"new 8: a child that is poked, and joined", "a child by name", Variant{EndedWhilePoked: true}},
		{"design 5: a completed thread that is poked, and stopped", "a completed thread", Variant{EndedIsDeaf: true}},
		{"known 4: each thread asks its provider", "a provider's limit, and children", Variant{AccountIgnored: true}},
		{"design 6: a retry, while the child's agent runs", "a child by name, and a retry", Variant{RaiseThenStop: true}},
		{"design 1: the record of a failure step", "a failure with an edge", Variant{FailureReopensRun: true}},
		{"design 2: a poke that fails, with an edge", "a failure with an edge", Variant{PokeMakesFailure: true}},
		{"design 3: a restore that cannot be done", "files that cannot be laid", Variant{RestoreOrNothing: true}},
		{"design 4: an error in a restore drops the intent", "files that cannot be laid", Variant{IntentDroppedEarly: true}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == fault.in })
			s := search{scenario: scenarios[i], v: fault.v}
			if history := s.run(); history == "" {
				t.Error("not found")
			} else {
				t.Logf("%s:%s", fault.in, history)
			}
		})
	}
}
