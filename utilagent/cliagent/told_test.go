package cliagent_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// hearing is a toy that can receive messages while it works; H confirms one.
func hearing() cliagent.Adapter {
	a := toy()
	command := a.Command
	a.Command = func(c cliagent.Call) (cliagent.Invocation, error) {
		inv, err := command(c)
		inv.Args, inv.Stdin, inv.Open = append([]string{"--hears"}, inv.Args...), strconv.Quote(c.Prompt)+"\n", true
		return inv, err
	}
	a.Decoder = func(cliagent.Call) cliagent.Decoder { return &hearingDecoder{} }
	return a
}

type hearingDecoder struct{ toyDecoder }

func (d *hearingDecoder) Line(line []byte) ([]cliagent.Event, bool) {
	if id, told := strings.CutPrefix(string(line), "H "); told {
		return []cliagent.Event{{Kind: cliagent.MessageReceived, ID: id}}, true
	}
	return d.toyDecoder.Line(line)
}

func (*hearingDecoder) EncodeMessage(id, text string) ([]byte, error) {
	return []byte(id + " " + strconv.Quote(text) + "\n"), nil
}

// toldIn returns the number of turns with messages in a step.
func toldIn(got *agentkittest.Outcome) (n int) {
	for _, turn := range got.Turns {
		if turn.Role == protocol.TurnUser && strings.Contains(turn.Content, "Leave the parser alone.") {
			n++
		}
	}
	return n
}

// Messages from people reach a working program if it can receive them, and otherwise before its answer is
// accepted. (A report: "it is on the wrong track, and I can only kill it".)
func TestMessageIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	const said = "!post Leave the parser alone.\n"
	for name, c := range map[string]struct {
		adapter cliagent.Adapter
		plays   []string
	}{
		"while it works":                {hearing(), []string{"S {session}\nT I begin.\n" + said + "!take\n!heard\n" + good + "\n.\n!end"}},
		"after its first answer":        {hearing(), []string{"S {session}\nT I begin.\n" + said + "!take\n" + good + "\n.\n!heard\n" + good + "\n.\n!end"}},
		"it ends before it has read it": {hearing(), []string{"S {session}\n" + said + "!take\n" + good + "\n.", "S {session}\n" + good + "\n.\n!end"}},
		"it cannot hear":                {toy(), []string{"S {session}\n" + said + good + "\n.", "S {session}\n" + good + "\n."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := set(t, c.adapter, "").plays(c.plays...)
			got := b.step().Succeeded()
			require.NotZero(t, toldIn(got))
			require.Empty(t, runfiles.Dir(b.RunDir).Unread())
			calls := b.heard(len(c.plays))
			if last := calls[len(calls)-1]; len(calls) > 1 {
				prosetest.Text(t, last.Prompt)
				require.Subset(t, last.Args, []string{"--resume", got.Step.SessionID}, "in the same session")
			}
			b.plays("S {session}\n" + good + "\n.\n!end")
			require.Zero(t, toldIn(b.step().Succeeded()), "it is told once")
		})
	}
}

// A message delivered in a failed call is also part of the next try, which continues the session.
func TestMessageIsDeliveredAfterFailure(t *testing.T) {
	t.Parallel()
	b := set(t, toy(), "").plays(
		"S {session}\n!post Leave the parser alone.\n"+good+"\n.", "X error server 503", "S {session}\n"+good+"\n.",
	)
	b.step().Failed("server 503")
	got := b.step().Succeeded()
	calls := b.heard(3)
	prosetest.Text(t, calls[2].Prompt)
	require.Subset(t, calls[2].Args, []string{"--resume", got.Step.SessionID})
	require.Empty(t, runfiles.Dir(b.RunDir).Unread())
}

// Messages delivered to a lost session are delivered to the new one as well.
func TestMessagesSurviveLostSession(t *testing.T) {
	t.Parallel()
	b := set(t, hearing(), "").plays(
		"S {session}\nT I begin.\n!post Leave the parser alone.\n!take\n!heard\nX error server 503\n!end",
		"X error session_not_found gone",
		"S {session}\n"+good+"\n.\n!end",
	)
	b.step().Failed("server 503")
	b.step().Succeeded()
	prosetest.Text(t, b.heard(3)[2].Prompt)
}
