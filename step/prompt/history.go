package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/fence"
)

// How much of the earlier steps a prompt holds: so many characters, and so many
// steps. Without the second bound a long thread of short answers would cost a
// step hundreds of node reads; who needs more has `uwf thread read`.
const (
	HistoryQuota = 32000
	HistorySteps = 20
)

// Step is an earlier step as far as a prompt needs it.
type Step struct {
	Number  int // from 1
	Role    string
	Agent   string
	Output  any
	Content string // the agent's answer; "" if unknown
}

// History takes the newest steps, at most [HistorySteps], that fit into quota
// characters (0: [HistoryQuota]) from a sequence that yields the newest first. It
// stops pulling then, so its cost does not depend on how many steps there are. The newest step is always taken; its content is cut if it alone is too
// long. An error of the sequence is returned.
func History(steps iter.Seq2[Step, error], quota int) ([]Step, error) {
	if quota <= 0 {
		quota = HistoryQuota
	}
	var taken []Step
	for s, err := range steps {
		if err != nil {
			return nil, err
		}
		room := quota
		if quota -= size(s); quota < 0 && len(taken) > 0 {
			break
		}
		s.Content = cut(s.Content, room-size(Step{Role: s.Role, Agent: s.Agent, Output: s.Output}))
		taken = append(taken, s)
		if quota <= 0 || len(taken) == HistorySteps {
			break
		}
	}
	return taken, nil
}

// Continuation is what happened (since the role's last turn, if its session goes
// on) and what to do now.
func Continuation(p Parts) string {
	title := "What Happened So Far"
	if p.Continuing {
		title = "What Happened Since Your Last Turn"
	}
	var steps []string
	if p.Omitted > 0 {
		steps = append(steps, fmt.Sprintf("_Showing %d of %d steps (%d omitted due to quota)_",
			len(p.History), len(p.History)+p.Omitted, p.Omitted))
	}
	// The agent reads forwards in time, although the newest are chosen first.
	for i := len(p.History) - 1; i >= 0; i-- {
		steps = append(steps, p.History[i].render())
	}
	return join(
		section(title, strings.Join(steps, "\n\n")),
		section("Your Last Answer Was Not Accepted", fence.Text(fence.AnswerProblem, trim(p.Rejected))),
		section("Moderator Instruction", p.EdgePrompt),
	)
}

func (s Step) render() string {
	output := fence.Data(fence.StepOutput, compactJSON(s.Output), s.Output)
	return s.renderAs(output, fence.Text(fence.StepOutput, trim(s.Content)))
}

func (s Step) renderAs(output, content string) string {
	head := fmt.Sprintf("### Step %d: %s\nOutput: %s\nAgent: %s", s.Number, name(s.Role), output, name(s.Agent))
	if content == "" {
		return head
	}
	return head + "\n\n#### Step Content\n\n" + content
}

// size is what a step costs of the quota, in characters. A fence costs nothing.
func size(s Step) int {
	return utf8.RuneCountInString(s.renderAs(compactJSON(s.Output), trim(s.Content)))
}

// cut shortens a text to about limit characters, keeping more of its end, where
// an answer says what came out of it.
func cut(s string, limit int) string {
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s
	}
	const least = 200 // less than that tells nothing
	limit = max(limit, least)
	if n <= limit {
		return s
	}
	runes := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	head := limit / 4
	tail := limit - head
	return fmt.Sprintf("%s\n\n_[%d characters left out]_\n\n%s",
		string(runes[:head]), len(runes)-limit, string(runes[len(runes)-tail:]))
}

// compactJSON writes a JSON value on one line, keys sorted, without the escapes
// that are meant for HTML.
func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v)) // not a JSON value: a caller's mistake, still shown
	}
	return strings.TrimSuffix(b.String(), "\n")
}
