// Package prompt generates an agent's prompt: the format of its answer, its role, the task, the history and
// the instruction. All agents share these parts; agents in other languages get them from `uwf step prompt`.
//
// The text depends only on the arguments, so that equal beginnings stay equal and a provider's prompt cache
// can hit. Texts from models and files are cleaned of control characters and invalid UTF-8. Package
// promptquote fences the texts of other agents, so that they can't pass for a part of the prompt.
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

// Parts are the components of a prompt.
type Parts struct {
	Role       protocol.Role
	RoleName   string
	Schema     any    // of the role's output, as a JSON value
	Structured bool   // the agent returns structured data, so the prompt omits the format
	Task       string // the thread's prompt
	History    []Step // newest first; if Continuing, only the steps since the role's last one
	Omitted    int    // number of older steps omitted from History
	EdgePrompt string // the moderator's instruction for this step: the prompt of the graph's edge that led here
	Cwd        string // working directory; "" omits it
	Artifacts  string // directory of [protocol.EnvArtifacts]; "" without one
	Thread     string // its id
	Number     int    // of the next step, from 1
	Visit      int    // number of the role's earlier steps
	Continuing bool   // the agent continues the session of its last step
	Rejected   string // why the last answer in that session was rejected; "" if it wasn't
}

// Full returns the whole prompt as one message: System and User. A continued session already contains the
// role and the task; only the format is repeated, because long sessions forget it first.
func Full(p Parts) string {
	full, _, _ := All(p)
	return full
}

// All returns what Full, System and User return.
func All(p Parts) (full, system, user string) {
	form := format(p)
	system, user = join(form, RolePrompt(p.Role)), User(p)
	if p.Continuing {
		return join(form, user), system, user
	}
	return join(system, user), system, user
}

// System returns the part that is the same for all steps of a role: format and role.
func System(p Parts) string { return join(format(p), RolePrompt(p.Role)) }

// User returns the rest: the task, the history, the instruction, the working directory and the step's number.
func User(p Parts) string {
	if p.Continuing {
		return join(Continuation(p), place(p))
	}
	if len(p.Task) > longTask && strings.TrimSpace(p.EdgePrompt) == strings.TrimSpace(p.Task) {
		p.EdgePrompt = "Do what the task above says."
	}
	return join(section("Task", p.Task), Continuation(p), place(p))
}

// longTask is the length in bytes from which a task isn't repeated in the instruction if the workflow passes
// it on unchanged.
const longTask = 500

// RolePrompt returns the role's sections. It omits empty ones except Prepare, the command reference.
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

// format returns the first part: the format instruction or, for an agent that returns structured data, the
// sentence about scope.
func format(p Parts) string {
	if p.Structured {
		return scopeSentence
	}
	return FormatInstruction(p.Schema)
}

// place describes the working directory and how far the thread is. Without it, models waste turns finding
// this out.
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

// mentions reports whether the workflow's author or the user mentions a word.
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

// section returns a heading and its text, or "" without text.
func section(title, text string) string {
	if text = trim(text); text == "" {
		return ""
	}
	return "## " + title + "\n\n" + text
}

// join joins the non-empty parts with blank lines.
func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p = trim(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n")
}

// trim cleans a text and removes blank lines around it. It keeps leading spaces, because they might be part
// of code.
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

// oneLine converts a text to a single line of a list.
func oneLine(s string) string { return strings.Join(strings.Fields(plaintext.Replace(s)), " ") }

// name formats the name of a role or an agent within a line. It replaces all but letters, digits and a few
// signs, because a step from elsewhere, such as an imported bundle, can have any text as a name.
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

// Correction asks for a valid answer in the session of a rejected one. why is the text of an extract error,
// which lists the fields.
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

// ValueCorrection is Correction for an agent that returns structured data.
func ValueCorrection(why string, schema any) string {
	return join(
		"The value that you returned does not satisfy the schema of your role:",
		promptquote.Text(promptquote.AnswerProblem, trim(why)),
		"Your work is done: do not repeat it. Return the corrected value, whole. The schema is:",
		"```json\n"+indented(schema)+"\n```",
	)
}

// Extraction asks another model to extract the data from an agent's answer, as a last resort if it has no
// valid frontmatter. heading is the role's optional extractPrompt.
func Extraction(heading string, schema any, answer string) (system, user string) {
	const rule = "You extract data from the answer of another agent. " +
		"Reply with exactly one JSON object that satisfies the JSON Schema below, and nothing else. " +
		"Use only what the answer says. If it does not say what a required field needs, reply with the JSON value null: " +
		"an invented value does more harm than a failed step."
	system = join(heading, rule, "```json\n"+indented(schema)+"\n```")
	return system, promptquote.Text(promptquote.Answer, trim(answer))
}

// Bounds of the history in a prompt, in characters and steps. Without the second bound, a long thread of
// short answers would cost hundreds of node reads per step. An agent that needs more can run `uwf thread
// read`.
const (
	HistoryQuota = 32000
	HistorySteps = 20
)

// Step is an earlier step, with the fields that a prompt needs.
type Step struct {
	Number  int // from 1
	Role    string
	Agent   string
	Output  any
	Content string // the agent's answer; "" if unknown
}

// History returns the newest steps, at most [HistorySteps], that fit into quota characters (0:
// [HistoryQuota]). The sequence must yield the newest first; History stops reading it early, so its cost
// doesn't depend on the total number of steps. It always returns the newest step, with its content shortened
// if it alone is too long. It returns the sequence's error.
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

// Continuation returns the history (since the role's last step, if its session continues) and the
// instruction.
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
	// The newest steps are selected first, but the agent reads them in chronological order.
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
	return s.renderWith(output, promptquote.Text(promptquote.StepOutput, trim(s.Content)))
}

// renderWith formats a step with the given forms of its output and content, which may be quoted.
func (s Step) renderWith(output, content string) string {
	head := fmt.Sprintf("### Step %d: %s\nOutput: %s\nAgent: %s", s.Number, name(s.Role), output, name(s.Agent))
	if content == "" {
		return head
	}
	return head + "\n\n#### Step Content\n\n" + content
}

// size returns the number of characters that a step takes from the quota, without the quoting of its texts.
func size(s Step) int {
	return utf8.RuneCountInString(s.renderWith(compactJSON(s.Output), trim(s.Content)))
}

// cut shortens a text to about limit characters and keeps more of its end, where an answer usually states its
// result.
func cut(s string, limit int) string {
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s
	}
	const least = 200 // shorter excerpts aren't useful
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

// compactJSON formats a JSON value on one line, with sorted keys and without HTML escapes.
func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v)) // not a JSON value: a caller's mistake, shown anyway
	}
	return strings.TrimSuffix(b.String(), "\n")
}
