package agentkittest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// FakeModel is an agent whose model can be listened to.
type FakeModel struct {
	Scenario
	// Agent makes the agent's options: new ones for each step, as a process of its own
	// would.
	Agent func() agentkit.Options
	// Says sets what the model answers from now on, each time: a good answer that
	// holds the word, or one that is not the role's output.
	Says func(word string, good bool)
	// Heard is all that the model was given with the newest question, with the
	// conversation before it.
	Heard func() string
}

// mind is a thread with a mind on it.
type mind struct {
	*Thread
	FakeModel
	t *testing.T
}

// KnowsOnlyItsHistory tests that a thread which was forked, replayed or poked is told
// nothing of what is not its past: whatever the agent's sessions have seen since.
func KnowsOnlyItsHistory(t *testing.T, make func(t *testing.T) FakeModel) {
	t.Helper()
	for name, tell := range map[string]func(*mind){
		"a fork in the middle": func(m *mind) {
			first := m.visits("FIRST")
			m.visits("FUTURE")
			fork := m.at(first)
			fork.visits("BRANCH")
			fork.heard("FIRST").not("FUTURE")
			m.visits("LATER")
			m.heard("FIRST", "FUTURE").not("BRANCH")
			fork.visits("TWIG")
			fork.heard("FIRST", "BRANCH").not("FUTURE", "LATER")
		},
		"a fork of a fork": func(m *mind) {
			fork := m.at(m.visits("FIRST"))
			branch := fork.visits("BRANCH")
			fork.visits("FUTURE")
			again := fork.at(branch)
			again.visits("LEAF")
			again.heard("FIRST", "BRANCH").not("FUTURE")
		},
		"two forks in turn": func(m *mind) {
			first := m.visits("FIRST")
			m.at(first).visits("BRANCH")
			m.at(first).visits("ANOTHER")
			m.heard("FIRST").not("BRANCH")
			m.visits("LATER")
			m.heard("FIRST").not("BRANCH", "ANOTHER")
		},
		"a replay": func(m *mind) {
			start := m.Head
			m.visits("FUTURE")
			fork := m.at(start)
			fork.visits("FIRST")
			fork.not("FUTURE")
		},
		"a poke": func(m *mind) {
			m.visits("FIRST")
			m.visits("FUTURE")
			m.pokes("POKED")
			m.heard("FIRST", "otherwise").not("FUTURE")
			m.visits("LATER")
			m.heard("FIRST", "POKED").not("FUTURE")
			m.pokes("AGAIN")
			m.heard("FIRST", "POKED").not("FUTURE", "LATER")
		},
		"a fork after a rejected try": func(m *mind) {
			first := m.visits("FIRST")
			m.fails("FUTURE")
			fork := m.at(first)
			fork.visits("BRANCH")
			fork.heard("FIRST").not("FUTURE")
		},
		"a poke after a rejected try": func(m *mind) {
			m.visits("FIRST")
			m.visits("FUTURE")
			m.fails("REJECTED")
			m.pokes("POKED")
			m.heard("FIRST").not("FUTURE", "REJECTED")
		},
		"a rejected poke": func(m *mind) {
			m.visits("FIRST")
			m.visits("SECOND")
			m.says("FUTURE", false)
			m.poke().Failed("")
			m.visits("THIRD")
			m.heard("FIRST", "SECOND").not("FUTURE")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := make(t)
			tell(&mind{Thread: New(t, m.Scenario), FakeModel: m, t: t})
		})
	}
}

func (m *mind) says(word string, good bool) { m.Says(word, good) }

// visits is a step of the role, in which it says a word.
func (m *mind) visits(word string) cas.Hash {
	m.t.Helper()
	m.says(word, true)
	return m.Run(m.Agent()).Succeeded().Result.StepHash
}

// fails is a try whose answer is rejected.
func (m *mind) fails(word string) {
	m.t.Helper()
	m.says(word, false)
	m.Run(m.Agent()).Failed("")
}

// pokes has the newest step made once more.
func (m *mind) pokes(word string) {
	m.t.Helper()
	m.says(word, true)
	m.poke().Succeeded()
}

func (m *mind) poke() *Outcome { return m.Poke(m.Agent(), "Do it otherwise.") }

// at is a fork that goes on from a node.
func (m *mind) at(node cas.Hash) *mind {
	m.t.Helper()
	fork := *m
	fork.Thread = m.ForkAt(node)
	return &fork
}

// heard requires that the newest question told of all these.
func (m *mind) heard(words ...string) *mind {
	m.t.Helper()
	for _, word := range words {
		require.Contains(m.t, m.Heard(), word)
	}
	return m
}

// not requires that it told of none of these.
func (m *mind) not(words ...string) {
	m.t.Helper()
	for _, word := range words {
		require.NotContains(m.t, m.Heard(), word)
	}
}

// Poke lets an agent make the newest step once more, told something else, as
// `uwf thread retry` does. If it fails, the thread is as it was.
func (th *Thread) Poke(o agentkit.Options, instruction string) *Outcome {
	th.t.Helper()
	old, own := th.Head, th.scenario.EdgePrompt
	step := node[protocol.Step](th, old)
	before := step.Start
	if step.Prev != nil {
		before = *step.Prev
	}
	th.move(before)
	th.scenario.EdgePrompt = instruction
	got := th.Run(o)
	if th.scenario.EdgePrompt = own; got.Result.StepHash == "" {
		th.move(old)
	}
	return got
}
