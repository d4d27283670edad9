// Package prompt writes what an agent is told: the format of its answer, its
// role, the task, what happened so far and what to do now. All agents share
// these parts, those in other languages through `uwf step prompt`.
//
// It is pure, and its text depends on nothing but its arguments, so that equal
// beginnings stay equal and a provider's prompt cache can hit. Texts that come
// from models or files are cleaned: no control characters, no invalid UTF-8. What
// other agents wrote cannot be taken for a part of the prompt: package fence encloses it.
package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/promptquote"
)

// Parts are what a prompt is made of.
type Parts struct {
	Role       protocol.Role
	RoleName   string
	Schema     any    // of the role's output, as a JSON value
	Structured bool   // the agent returns data itself: no format instruction
	Task       string // the thread's prompt
	History    []Step // newest first; steps since the role's last turn when Continuing
	Omitted    int    // older steps that were left out of History
	EdgePrompt string
	Cwd        string
	Artifacts  string // the directory of [protocol.EnvArtifacts]; "": none
	Thread     string // its id
	Number     int    // of the step to be made, from 1
	Visit      int    // how often the role has had its turn before
	Continuing bool   // the agent still has the session of its last turn
	Rejected   string // why the last answer in that session was not accepted, "" if it was
}

// Full is the whole prompt as one message: System and User. For a session that
// goes on, the role and the task are in it already, and the format is repeated,
// because long sessions forget it first.
func Full(p Parts) string {
	if p.Continuing {
		return join(format(p), User(p))
	}
	return join(System(p), User(p))
}

// System is the part that stays the same over a role's turns: format and role.
func System(p Parts) string { return join(format(p), RolePrompt(p.Role)) }

// User is the rest: the task, what happened, what to do now, and where.
func User(p Parts) string {
	if p.Continuing {
		return join(Continuation(p), place(p))
	}
	if len(p.Task) > longTask && strings.TrimSpace(p.EdgePrompt) == strings.TrimSpace(p.Task) {
		p.EdgePrompt = "Do what the task above says."
	}
	return join(section("Task", p.Task), Continuation(p), place(p))
}

// longTask is the length in bytes from which a task is not told twice, as it would
// be by a workflow that hands it to its first role.
const longTask = 500

// RolePrompt is the role's sections. Empty ones are left out; Prepare, the
// command reference, is always there.
func RolePrompt(r protocol.Role) string {
	return join(
		section("Goal", r.Goal),
		section("Capabilities", bullets(r.Capabilities)),
		section("Prepare", join(protocol.Reference(), skills(r.Capabilities))),
		section("Procedure", r.Procedure),
		section("Output", r.Output),
	)
}

func skills(capabilities []string) string {
	if len(capabilities) == 0 {
		return ""
	}
	return "You have the following capabilities: " + strings.Join(capabilities, ", ") +
		". Load relevant skills matching these keywords before starting work."
}

func bullets(items []string) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString("- " + oneLine(item) + "\n")
	}
	return b.String()
}

// format is what stands first: the format instruction, or for an agent that
// returns data only the sentence about scope.
func format(p Parts) string {
	if p.Structured {
		return scopeSentence
	}
	return FormatInstruction(p.Schema)
}

// place says where the agent is: models that are not told spend turns on
// finding out (the directory, and how far the thread has come).
func place(p Parts) string {
	var lines []string
	if p.Cwd != "" {
		lines = append(lines, fmt.Sprintf("You work in %s; relative paths start there.",
			promptquote.Word(promptquote.Directory, p.Cwd, "`"+p.Cwd+"`")))
	}
	if p.Artifacts != "" && p.mentions(protocol.EnvArtifacts) {
		lines = append(lines, fmt.Sprintf("$%s is `%s`, a directory for files of this run that are no part of the work.",
			protocol.EnvArtifacts, oneLine(p.Artifacts)))
	}
	if p.Number > 0 {
		lines = append(lines, fmt.Sprintf("This is step %d of thread %s. Your role, %s, has had %s before.",
			p.Number, p.Thread, p.RoleName, count(p.Visit, "turn")))
	}
	return section("Working Directory", strings.Join(lines, "\n\n"))
}

// mentions reports whether a word stands in what the author of the workflow or the user has written.
func (p Parts) mentions(word string) bool {
	r := p.Role
	return strings.Contains(strings.Join([]string{r.Goal, r.Procedure, r.Output, p.Task, p.EdgePrompt}, "\n"), word)
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// section is a heading with its text, or nothing if there is no text.
func section(title, text string) string {
	if text = trim(text); text == "" {
		return ""
	}
	return "## " + title + "\n\n" + text
}

// join puts a blank line between the parts that are not empty.
func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p = trim(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n")
}

// trim cleans a text and takes away blank lines around it. Spaces before the
// first word of its first line stay: they may be code.
func trim(s string) string {
	s = strings.TrimRight(plaintext.Replace(s), " \t\n")
	for {
		line, rest, found := strings.Cut(s, "\n")
		if !found || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// oneLine makes a text fit into one line of a list.
func oneLine(s string) string { return strings.Join(strings.Fields(plaintext.Replace(s)), " ") }

// name is the name of a role or an agent as it stands in a line: a word, which says
// nothing. Steps of others, as in a bundle, may have any text in its place.
func name(s string) string {
	const longest = 100 // characters
	s = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+@", r) {
			return r
		}
		return '_'
	}, strings.TrimSpace(s))
	runes := []rune(s)
	return string(runes[:min(len(runes), longest)])
}

// Correction asks, in the session of an answer that could not be used, for a
// valid one; why is the text of an extract error, which names the fields.
func Correction(why string, schema any) string {
	return join(
		"Your previous response did not contain valid YAML frontmatter matching the role schema:",
		promptquote.Text(promptquote.AnswerProblem, trim(why)),
		"Your work is done: do not repeat it and use no tools. "+
			"You MUST begin your response with a YAML frontmatter block (--- delimited). "+
			"Please output ONLY the corrected frontmatter block followed by your work.",
		formatBody(schema),
	)
}

// ValueCorrection is Correction for an agent that returns data itself.
func ValueCorrection(why string, schema any) string {
	return join(
		"The value that you returned does not satisfy the schema of your role:",
		promptquote.Text(promptquote.AnswerProblem, trim(why)),
		"Your work is done: do not repeat it. Return the corrected value, whole. The schema is:",
		"```json\n"+indented(schema)+"\n```",
	)
}

// Extraction asks a model that has not done the work to read the answer of one
// that has: the last resort when no valid frontmatter came. Heading is the
// role's extractPrompt, may be empty.
func Extraction(heading string, schema any, said string) (system, user string) {
	const rule = "You extract data from the answer of another agent. " +
		"Reply with exactly one JSON object that satisfies the JSON Schema below, and nothing else. " +
		"Use only what the answer says. If it does not say what a required field needs, reply with the JSON value null: " +
		"an invented value does more harm than a failed step."
	system = join(heading, rule, "```json\n"+indented(schema)+"\n```")
	return system, promptquote.Text(promptquote.Answer, trim(said))
}

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
// stops pulling then, so its cost does not depend on how many steps there are. The newest step is
// always taken; its content is cut if it alone is too
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
		section("Your Last Answer Was Not Accepted", promptquote.Text(promptquote.AnswerProblem, trim(p.Rejected))),
		section("Moderator Instruction", p.EdgePrompt),
	)
}

func (s Step) render() string {
	output := promptquote.Data(promptquote.StepOutput, compactJSON(s.Output))
	return s.renderAs(output, promptquote.Text(promptquote.StepOutput, trim(s.Content)))
}

func (s Step) renderAs(output, content string) string {
	head := fmt.Sprintf("### Step %d: %s\nOutput: %s\nAgent: %s", s.Number, name(s.Role), output, name(s.Agent))
	if content == "" {
		return head
	}
	return head + "\n\n#### Step Content\n\n" + content
}

// size is what a step costs of the quota, in characters. A quotation costs nothing.
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
