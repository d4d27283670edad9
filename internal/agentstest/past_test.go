//go:build agents

package agentstest

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pastStories test forked, replayed and poked threads whose session in the program has moved on: they must
// get only their own history.
var pastStories = []story{
	{"a fork knows only its past", forkInTheMiddle}, {"a replay knows only its past", replayInTheMiddle},
	{"a poke knows only its past", pokeTheNewest}, {"a fork after a killed try", forkAfterAKill},
}

const future = "SECRETFUTURE"

// threeSteps makes three steps: a writer's word, a critic's verdict, and a word that is discarded later.
func (b *bench) threeSteps() {
	b.t.Helper()
	b.model.play(reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: too grey\n---\n"}, reply{text: answer(future)})
	b.mustStep()
	b.mustStep()
	b.mustStep()
	require.Equal(b.t, future, b.last().Output["word"])
}

// knew requires that all requests since the script was set contain only the history, and logs the session of
// the newest step.
func (b *bench) knew() {
	b.t.Helper()
	asked := b.model.asked()
	require.NotEmpty(b.t, asked)
	require.Contains(b.t, asked[0], "I wrote fog.")
	for _, request := range asked {
		require.NotContains(b.t, request, future)
	}
	b.t.Log(b.sessionOf(b.last().Hash))
}

// sessionOf returns the session in a step's detail.
func (b *bench) sessionOf(hash string) string {
	b.t.Helper()
	outcome := b.outcome(hash)
	_, said, ok := strings.Cut(outcome, "session: ")
	require.True(b.t, ok, outcome)
	return said
}

// outcome returns the outcome in a step's detail.
func (b *bench) outcome(hash string) string {
	b.t.Helper()
	var shown struct{ Detail struct{ Outcome string } }
	b.json(&shown, "step", "show", hash)
	return shown.Detail.Outcome
}

func (b *bench) forkAt(step string) *bench {
	b.t.Helper()
	var forked struct{ Thread string }
	b.json(&forked, "thread", "fork", b.thread+"@"+step)
	return &bench{world: b.of(forked.Thread), model: b.model}
}

func forkInTheMiddle(t *testing.T, b *bench) {
	b.threeSteps()
	fork := b.forkAt("2")
	b.model.play(reply{text: answer("rain")})
	fork.mustStep()
	require.Equal(t, "rain", fork.last().Output["word"])
	fork.knew()
	again := b.forkAt("2") // it must not contain the first fork either
	b.model.play(reply{text: answer("hail")})
	again.mustStep()
	again.knew()
	require.NotContains(t, b.model.asked()[0], "I wrote rain.")
}

func replayInTheMiddle(t *testing.T, b *bench) {
	b.threeSteps()
	b.model.play(reply{text: answer("rain")}, reply{text: "---\n$status: good\n---\n"})
	var replayed struct{ Thread string }
	b.json(&replayed, "thread", "replay", b.thread, "--from", "3")
	require.Len(t, b.model.asked(), 2)
	fork := &bench{world: b.of(replayed.Thread), model: b.model}
	fork.knew()
}

func pokeTheNewest(t *testing.T, b *bench) {
	b.threeSteps()
	b.model.play(reply{text: answer("rain")}, reply{text: "---\n$status: bad\nwhy: too wet\n---\n"}, reply{text: answer("hail")})
	var poked struct{ Status string }
	b.json(&poked, "thread", "retry", b.thread, "-p", "Another word.")
	require.Equal(t, "rain", b.last().Output["word"])
	b.knew()
	b.mustStep()
	b.mustStep()
	require.Equal(t, "hail", b.last().Output["word"])
	require.Contains(t, b.model.asked()[2], "I wrote rain.", "the new answer is its past")
	b.knew()
}

// forkAfterAKill checks that a killed try is not part of a fork's history.
func forkAfterAKill(t *testing.T, b *bench) {
	b.model.play(reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: too grey\n---\n"},
		reply{text: future, run: "echo " + future}, reply{hold: true})
	b.mustStep()
	b.mustStep()
	wait, _ := b.background()
	require.Eventually(t, func() bool { return len(b.model.asked()) == 4 }, patience, 10*time.Millisecond, "the model is asked again after the tool")
	require.NoError(t, syscall.Kill(b.agentPid(), syscall.SIGKILL))
	require.Error(t, wait())
	require.Eventually(t, func() bool { return len(processesIn(b.dir)) == 0 }, patience, 50*time.Millisecond, "nothing of the program is left")
	fork := b.forkAt("2")
	b.model.play(reply{text: answer("rain")})
	fork.mustStep()
	fork.knew()
}
