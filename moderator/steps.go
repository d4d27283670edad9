package moderator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// wanted lists the earlier answers that a template or an expression can use.
type wanted struct {
	steps, body, artifacts bool
	roles                  map[string]bool // roles whose answers are wanted; nil means all
}

// wantedBy collects the names that begin with $steps, $body or $artifacts.
func wantedBy(names [][]string) (w wanted) {
	all := false
	for _, path := range names {
		switch {
		case len(path) == 0:
		case path[0] == protocol.BodyVariable:
			w.body = true
		case path[0] == protocol.ArtifactsVariable:
			w.artifacts = true
		case path[0] != protocol.StepsVariable:
		case len(path) == 1:
			w.steps, all = true, true
		default:
			if w.steps = true; w.roles == nil {
				w.roles = map[string]bool{}
			}
			w.roles[path[1]] = true
		}
	}
	if all {
		w.roles = nil
	}
	return w
}

func (w wanted) nothing() bool { return !w.steps && !w.body && !w.artifacts }

// earlier returns the wanted values of $steps, $body and $artifacts.
func (s State) earlier(w wanted) (map[string]any, error) {
	values := map[string]any{}
	if w.steps {
		steps, err := s.answers(w.roles)
		if err != nil {
			return nil, err
		}
		values[protocol.StepsVariable] = steps
	}
	if w.artifacts && s.artifacts != "" {
		values[protocol.ArtifactsVariable] = s.artifacts
	}
	if w.body && s.Last != nil {
		body := ""
		if s.Body != nil && s.Workflow.Roles[s.Last.Role].Player() == protocol.PlayedByAgent {
			var err error
			if body, err = s.Body(); err != nil {
				return nil, fmt.Errorf("read last answer: %w", err)
			}
		}
		values[protocol.BodyVariable] = body
	}
	return values, nil
}

// answers returns the newest answers of the given roles; nil means all. It reads the history back to the
// oldest of them. Steps that asked a person and failed steps are not answers.
func (s State) answers(roles map[string]bool) (map[string]any, error) {
	found, missing := map[string]any{}, maps.Clone(roles)
	if roles == nil {
		missing = map[string]bool{}
		for role := range s.Workflow.Roles {
			missing[role] = true
		}
	}
	if s.History == nil && s.Last != nil {
		return nil, errNoHistory
	}
	if s.History == nil || len(missing) == 0 {
		return found, nil
	}
	for step, err := range s.History {
		if err == nil && missing[step.Role] && !step.Failed {
			var output any
			if output, err = step.Output(); err == nil {
				if status, _ := statusOf(output); status != protocol.SuspendNode {
					if s.toProgram {
						output = asWord(s, step.Role, output)
					}
					found[step.Role] = output
					delete(missing, step.Role)
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read previous steps: %w", err)
		}
		if !step.hasBefore(missing) {
			break
		}
	}
	return found, nil
}

// hasBefore reports whether one of the roles might have made a step before this one.
func (h HistoryStep) hasBefore(roles map[string]bool) bool {
	for role := range roles {
		own := 0
		if role == h.Role {
			own = 1
		}
		if h.Visits == nil || h.Visits[role] > own {
			return true
		}
	}
	return false
}

// bindings returns the variables of an expression.
func (s State) bindings(r jsonata.Reads) (map[string]any, error) {
	values := map[string]any{inputsBinding: inputsOf(s)}
	if s.Workflow.Language == 0 {
		return values, nil
	}
	names := make([][]string, len(r.Bound))
	for i, p := range r.Bound {
		names[i] = append([]string{"$" + p.Names[0]}, p.Names[1:]...)
	}
	earlier, err := s.earlier(wantedBy(names))
	for name, value := range earlier {
		values[strings.TrimPrefix(name, "$")] = value
	}
	return values, err
}

// render renders a template over the stack and the earlier answers that it uses. The answer's fields, second
// on the stack, take precedence over the latter. If a text for a program ends with a value, the trailing
// newlines are dropped, as in a shell's $(…).
func (s State) render(t *mustache.Template, stack []any) (string, []mustache.Span, error) {
	stack, err := s.withEarlier(t, stack)
	if err != nil {
		return "", nil, err
	}
	text, spans, err := t.RenderSpans(stack...)
	if missing, ok := errors.AsType[*mustache.MissingError](err); ok {
		missing.Why = unanswered(missing.Name, stack)
	}
	if n := len(spans); s.toProgram && n > 0 && spans[n-1].To == len(text) {
		from := spans[n-1].From
		text = text[:from] + withoutLineFeeds(text[from:])
	}
	return text, spans, err
}

func (s State) withEarlier(t *mustache.Template, stack []any) ([]any, error) {
	if s.Workflow.Language == 0 {
		return stack, nil
	}
	answer, _ := stack[1].(map[string]any)
	earlier, err := s.earlier(wantedBy(pathsOf(t, answer)))
	if len(earlier) == 0 {
		return stack, err
	}
	if steps, ok := earlier[protocol.StepsVariable].(map[string]any); ok && len(steps) == 0 {
		earlier[protocol.StepsVariable] = nil // omits a section over it
	}
	return slices.Insert(slices.Clone(stack), 0, any(earlier)), nil
}

// pathsOf returns the names in a template that aren't fields of the answer.
func pathsOf(t *mustache.Template, answer map[string]any) (paths [][]string) {
	for _, tag := range t.Tags() {
		if len(tag.Path) > 0 && !has(answer, tag.Path[0]) {
			paths = append(paths, tag.Path)
		}
	}
	return paths
}

func has(object map[string]any, name string) bool {
	_, ok := object[name]
	return ok
}

// unanswered explains that a variable is missing because its role hasn't answered; "" if that isn't the
// reason.
func unanswered(name string, stack []any) string {
	path := strings.Split(name, ".")
	earlier, _ := stack[0].(map[string]any)
	steps, _ := earlier[protocol.StepsVariable].(map[string]any)
	if path[0] != protocol.StepsVariable || len(path) < 2 || !has(earlier, path[0]) || has(steps, path[1]) {
		return ""
	}
	return plaintext.Short(path[1], protocol.MaxName) + " has not answered yet"
}

// word renders a template for a command.
func (s State) word(template string, stack []any) (string, error) {
	t, err := mustache.Parse(template)
	if err != nil {
		return "", err
	}
	s.toProgram, s.artifacts = true, s.Artifacts
	text, _, err := s.render(t, stack)
	return text, err
}

func withoutLineFeeds(text string) string { return strings.TrimRight(text, "\r\n") }
