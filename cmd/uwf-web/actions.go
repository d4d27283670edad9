package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	fields "github.com/united-workforce/uwf/util/formfields"
	"github.com/united-workforce/uwf/util/threadid"
)

// form is the form for answering on a thread's page.
type form struct {
	ID     string // prefix of element IDs on the page
	Action string // URL for the POST
	Token  string // CSRF token of the pages
	Verb   string // the action to perform
	Label  string // label of the text field, or "" for none
	Button string
	Head   protocol.Hash // the head that the user has seen
	Asks   string        // the child that asks, and its head; "" if the thread asks itself
	Fields []field       // fields of a role played by a person
	More   bool          // the thread reached its limit, which can be raised
	From   string        // the page to return to; "" for the thread's

	ChoiceOf string   // the field that Choices set; "" if there are too many of them
	Choices  []choice // instead of Fields
	Optional []field  // of choices that need no other field
}

// formOf returns [formOf] for a page of this server.
func (s *server) formOf(ctx context.Context, at protocol.StepOutput, actions []protocol.Action) *form {
	f := formOf(at, actions)
	if f != nil {
		f.Action, f.Token, f.Asks = s.link("thread", at.Thread, f.Verb), s.token, s.asks(ctx, at)
		f.identify(at.Thread)
	}
	return f
}

// field is an input for one value.
type field struct {
	ID, Name, Label, Note string
	Post                  string // its name in the posted form
	Choices               []string
	Required, Long        bool
	Value                 string // already given
}

// formOf returns the form that continues a thread, or nil if it accepts no input now.
func formOf(at protocol.StepOutput, actions []protocol.Action) *form {
	f := &form{Head: at.Head}
	for _, a := range actions {
		switch a.Verb {
		case protocol.VerbAnswer:
			f.Verb, f.Button, f.Fields = "answer", "Answer", fieldsOf(a.Form)
			f.choose(a.Form)
			f.identify("")
			return f
		case protocol.VerbResume:
			if f.Verb, f.Label, f.Button = "resume", "Next instruction", "Continue"; at.Question != nil {
				f.Label, f.Button = "Your answer", "Answer"
			}
			return f
		case protocol.VerbRaiseLimit:
			f.More = slices.Contains(a.Command, at.Thread) // the limit is its own, not its parent's
		case protocol.VerbContinue:
			if f.Verb, f.Button = "continue", "Continue"; at.Status == protocol.StatusError {
				f.Button = "Retry"
			}
			return f
		}
	}
	if f.More {
		f.Verb, f.Button = "continue", "Continue"
		return f
	}
	return nil
}

// fieldsOf returns the fields of a schema and of its variants. Which variant applies is decided
// by uwf when the form is sent.
func fieldsOf(schema any) []field {
	var out []field
	add := func(given map[string]any) {
		for _, f := range fields.Fields(schema, given, protocol.StatusKey) {
			i := slices.IndexFunc(out, func(o field) bool { return o.Name == f.Name })
			if i >= 0 {
				continue
			}
			shown := fieldOf(f)
			shown.Required = f.Required && len(given) == 0
			out = append(out, shown)
		}
	}
	add(nil)
	for _, f := range slices.Clone(out) {
		for _, choice := range f.Choices {
			add(map[string]any{f.Name: choice})
		}
	}
	return out
}

// choice is an answer to a question that has few.
type choice struct {
	Value, Label string
	Fields       []field // to fill in with it; nil if it needs none
}

// fieldOf returns a field for display.
func fieldOf(f fields.Field) field {
	note := htmlpage.Line(f.Description, 500)
	if kind := f.Kind(); kind != "" && len(f.Choices) == 0 && kind != "a text" {
		note = strings.TrimSpace(note + " (" + kind + ")")
	}
	if f.Default != "" {
		note = strings.TrimSpace(note + " Default: " + htmlpage.Line(f.Default, htmlpage.Longest))
	}
	label := htmlpage.Line(f.Name, htmlpage.Longest)
	if f.Name == protocol.StatusKey {
		label = "Decision"
	}
	return field{
		Name: f.Name, Post: "field." + f.Name, Label: label, Note: note, Choices: f.Choices,
		Required: f.Required, Long: len(f.Choices) == 0 && (len(f.Types) == 0 || slices.Contains(f.Types, "string")),
	}
}

// choose sets the choices of a form, if they are few enough for buttons.
func (f *form) choose(schema any) {
	const most = 3
	of := slices.IndexFunc(f.Fields, func(x field) bool {
		return x.Required && 0 < len(x.Choices) && (x.Name == protocol.StatusKey || len(f.Fields) == 1)
	})
	if of < 0 || len(f.Fields[of].Choices) > most {
		return
	}
	f.ChoiceOf = f.Fields[of].Name
	for _, value := range f.Fields[of].Choices {
		c, needed := choice{Value: value, Label: htmlpage.Line(value, htmlpage.Longest)}, false
		for _, other := range fields.Fields(schema, map[string]any{f.ChoiceOf: value}, protocol.StatusKey) {
			if other.Name != f.ChoiceOf {
				c.Fields, needed = append(c.Fields, fieldOf(other)), needed || other.Required
			}
		}
		if !needed {
			for _, optional := range c.Fields {
				if !slices.ContainsFunc(f.Optional, func(o field) bool { return o.Name == optional.Name }) {
					f.Optional = append(f.Optional, optional)
				}
			}
			c.Fields = nil
		}
		f.Choices = append(f.Choices, c)
	}
}

// identify sets the IDs of the elements of a form.
func (f *form) identify(prefix string) {
	f.ID = prefix
	name := func(all []field, part string) {
		for i := range all {
			all[i].ID = prefix + part + "field-" + strconv.Itoa(i)
		}
	}
	name(f.Fields, "")
	name(f.Optional, "optional-")
	for i, c := range f.Choices {
		name(c.Fields, strconv.Itoa(i)+"-")
	}
}

// startPatience bounds how long an agent may take to start.
const startPatience = 2 * time.Minute

// open opens an engine that may change threads. It reads the current config.
func (s *server) open(ctx context.Context) (*engine.Engine, error) {
	dirs := s.engine.Reader.Dirs
	ctx = host.Context(ctx) // a request's context does not derive from main's
	return host.Open(ctx, s.env, host.Options{Home: dirs.Home, Store: dirs.Store, Hints: uwfHints})
}

// act performs one action on a thread. Agents run in a background worker, so neither a closed page nor the
// end of the server stops them.
func (s *server) act(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !threadid.Valid(id) {
		return notFound("thread not found")
	}
	// The action completes even if the browser disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), startPatience)
	defer cancel()
	e, err := s.open(ctx)
	if err == nil {
		err = confirm(ctx, e, r)
	}
	var facts []fact
	to := id
	if err == nil {
		to, facts, err = s.do(ctx, e, r, id)
	}
	back := s.link("thread", id)
	switch {
	case err != nil:
	case facts != nil:
		return s.show(w, "done", "Done", "", doneBody{Facts: facts, Back: back})
	case r.PostFormValue("from") == "inbox":
		back = s.base // with the next card
	default:
		back = s.link("thread", to)
	}
	return s.done(w, r, err, back, back+"/"+r.PathValue("verb"))
}

// done leads to a page, or reports why an action failed. If commands must be confirmed first, it asks; the
// action is where the confirmation is sent.
func (s *server) done(w http.ResponseWriter, r *http.Request, err error, back, action string) error {
	var untrusted *engine.UntrustedError
	switch {
	case errors.As(err, &untrusted):
		return s.showAs(w, http.StatusUnprocessableEntity, "trust", "May these commands run?", "",
			trustOf(untrusted, r, back, action))
	case errors.Is(err, &protocol.Error{Code: protocol.CodeNotFound}):
		return err
	case err != nil:
		return s.showAs(w, http.StatusUnprocessableEntity, "problem", "Not done", "",
			problem{Message: htmlpage.TextOf(err.Error(), most).Body, Hints: hintsOf(err), Back: back})
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
	return nil
}

// fact is a line of a result.
type fact struct{ Name, Value string }

// doneBody shows the result of an action that the thread's page does not show.
type doneBody struct {
	Facts []fact
	Back  string
}

// do performs the action of a form. to is the thread to show next, if there are no facts to show.
func (s *server) do(ctx context.Context, e *engine.Engine, r *http.Request,
	id string) (to string, facts []fact, err error) {
	line := func(text string) string { return htmlpage.Line(text, htmlpage.LongestTitle) }
	switch r.PathValue("verb") {
	case "message":
		return id, nil, e.Message(ctx, id, posted(r, "text"))
	case "stop":
		_, err = e.Stop(ctx, id)
		return id, nil, err
	case "undo", "redo":
		work := engine.Work{Do: engine.Action(r.PathValue("verb")), Steps: 1}
		if work.Expect, err = seen(r); err == nil {
			_, err = e.Do(ctx, id, work)
		}
		return id, nil, err
	case "seal":
		head, err := e.Reader.Head(ctx, id)
		if err != nil {
			return id, nil, err
		}
		kept, err := seal.Keep(ctx, e.Reader.Store, head)
		return id, []fact{{"Seal", line(kept.Seal.String())}}, err
	case "apply":
		dir, err := engine.RealDir(s.env.Dir)
		if err != nil {
			return id, nil, err
		}
		o := worktree.ApplyOptions{Dir: dir, Branch: strings.TrimSpace(posted(r, "branch"))}
		made, err := e.Files().Apply(ctx, id, o)
		return id, []fact{{"Branch", line(made.Branch)}, {"Commit", line(made.Commit)}}, err
	case "fork", "replay":
		step, err := protocol.ParseHash(r.PostFormValue("step"))
		if err == nil && r.PathValue("verb") == "fork" {
			to, err = e.Fork(ctx, step, engine.ForkOptions{})
		} else if err == nil {
			if to, _, err = e.ForkBefore(ctx, id, step, ""); err == nil {
				_, err = e.Background(ctx, to, engine.Work{})
			}
		}
		return to, nil, err
	case "retry-children":
		return id, nil, retryChildren(ctx, e, id, r.PostForm["key"])
	}
	work, err := s.workOf(ctx, e, r, id)
	if err == nil {
		_, err = e.Background(ctx, id, work)
	}
	return id, nil, err
}

// retryChildren discards the results of children and starts a worker that runs them again, even if some of them
// cannot be retried.
func retryChildren(ctx context.Context, e *engine.Engine, id string, keys []string) error {
	var failed []error
	for _, key := range keys {
		if _, err := e.Do(ctx, id, engine.Work{Do: engine.DoRetry, Key: key}); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", key, err))
		}
	}
	if len(failed) < len(keys) {
		_, err := e.Background(ctx, id, engine.Work{StepOptions: engine.StepOptions{Wake: true}})
		failed = append(failed, err)
	} else if len(keys) == 0 {
		return &protocol.Error{Code: protocol.CodeUsage, Message: "no child is selected"}
	}
	return errors.Join(failed...)
}

// posted returns a text of a form.
func posted(r *http.Request, name string) string {
	return strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n")
}

// seen returns the head that the page of a form has shown; "" if the form has none.
func seen(r *http.Request) (protocol.Hash, error) {
	head := r.PostFormValue("head")
	if head == "" {
		return "", nil
	}
	return protocol.ParseHash(head)
}

// asks returns the child that asks the question of a thread, and its head; "" if the thread asks itself. The head of a
// parent doesn't change between the questions of its children.
func (s *server) asks(ctx context.Context, at protocol.StepOutput) (child string) {
	const deepest = 100 // generations; the facts of a damaged thread may have a cycle
	for range deepest {
		i := slices.IndexFunc(at.Children, func(c protocol.ChildOutput) bool { return c.Status == protocol.StatusSuspended })
		if at.Status != protocol.StatusSuspended || at.Question == nil || i < 0 {
			break
		}
		var err error
		if at, err = s.engine.Reader.Show(ctx, at.Children[i].Thread); err != nil {
			return "" // an answer to another question is rejected
		}
		child = at.Thread + " " + string(at.Head)
	}
	return child
}

// stillAsks returns an error if another child asks than when the form was shown.
func (s *server) stillAsks(r *http.Request, id string) error {
	asked := r.PostFormValue("asks")
	if asked == "" {
		return nil
	}
	at, err := s.engine.Reader.Show(r.Context(), id)
	if err == nil && s.asks(r.Context(), at) != asked {
		why := "thread " + id + " asks another question now; nothing was answered"
		err = (&protocol.Error{Code: protocol.CodeHeadMoved, Message: why}).Because("moved", "thread", id)
	}
	return err
}

// workOf returns the background work that a form requests.
func (s *server) workOf(ctx context.Context, e *engine.Engine, r *http.Request, id string) (w engine.Work, err error) {
	if err := s.stillAsks(r, id); err != nil {
		return w, err
	}
	switch r.PathValue("verb") {
	case "answer":
		head, err := protocol.ParseHash(r.PostFormValue("head"))
		if err != nil {
			return w, err
		}
		value, err := s.answer(r, id)
		w.Do, w.Answer = engine.DoAnswer, &engine.Answer{Value: value, By: s.person(ctx), At: head}
		return w, err
	case "resume":
		w.Do, w.Prompt, w.Wake = engine.DoResume, posted(r, "text"), true
		w.Expect, err = seen(r)
		return w, err
	case "continue":
		if r.PostFormValue("more") != "" {
			if _, err := e.Grant(ctx, id, protocol.Limits{}, engine.More{Again: true}); err != nil {
				return w, err
			}
		}
		at, err := e.Reader.Show(ctx, id)
		if err != nil {
			return w, err
		}
		can, err := e.Reader.Actions(ctx, id)
		continues := func(a protocol.Action) bool { return a.Verb == protocol.VerbContinue }
		if err != nil || !slices.ContainsFunc(can, continues) {
			refused := &protocol.Error{Code: protocol.CodeUsage, Message: "the thread cannot be continued now"}
			return w, cmp.Or(err, error(refused))
		}
		if w.Wake = true; at.Status == protocol.StatusSuspended {
			w.Do = engine.DoResume
		}
		return w, nil
	case "retry":
		w.Do, w.Prompt = engine.DoPoke, posted(r, "text")
		if strings.TrimSpace(w.Prompt) == "" {
			return w, &protocol.Error{Code: protocol.CodeUsage, Message: "the instructions are empty"}
		}
		if step := r.PostFormValue("step"); step != "" {
			w.At, err = protocol.ParseHash(step)
			return w, err
		}
		w.Expect, err = seen(r)
		return w, err
	}
	return w, notFound("no such action")
}

// trust asks the user whether commands may run before it performs an action.
type trust struct {
	Why              string
	Commands         []string
	Thread, Workflow string // exactly one is set
	Verb             string
	Again            url.Values // to post again
	Back             string
}

func trustOf(u *engine.UntrustedError, r *http.Request, back, action string) trust {
	t := trust{Why: htmlpage.Line(u.Name+" "+u.Why, htmlpage.LongestTitle), Verb: action,
		Again: url.Values{}, Back: back}
	for _, command := range u.Commands {
		t.Commands = append(t.Commands, htmlpage.TextOf(command, most).Body)
	}
	for name, values := range r.PostForm {
		if name != "token" && name != "trust.thread" && name != "trust.workflow" {
			t.Again[name] = values
		}
	}
	if t.Thread = u.Thread; t.Thread == "" {
		t.Workflow = string(u.Workflow)
	}
	return t
}

// confirm handles the answer "yes".
func confirm(ctx context.Context, e *engine.Engine, r *http.Request) error {
	u := engine.UntrustedError{Thread: r.PostFormValue("trust.thread")}
	u.Workflow = protocol.Hash(r.PostFormValue("trust.workflow"))
	switch {
	case u.Thread == "" && u.Workflow == "":
		return nil
	case u.Thread != "" && !threadid.Valid(u.Thread), u.Workflow != "" && !u.Workflow.Valid():
		return notFound("nothing to confirm")
	}
	return e.Confirm(ctx, &u)
}

// person returns who has sent a form, and how that is known: the name of their token, or the user of this
// machine who opened the address.
func (s *server) person(ctx context.Context) string {
	if name, ok := ctx.Value(signedIn{}).(string); ok {
		return cmp.Or(name, "unnamed") + " (token)"
	}
	return host.Person(ctx, s.env)
}

// answer returns the values of a form without empty ones.
func (s *server) answer(r *http.Request, id string) (map[string]any, error) {
	at, err := s.engine.Reader.Show(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if at.Question == nil || at.Question.Schema == nil {
		return nil, &protocol.Error{Code: protocol.CodeFailed, Message: "the thread no longer waits for this form"}
	}
	value := map[string]any{}
	for name, given := range r.PostForm {
		name, ours := strings.CutPrefix(name, "field.")
		if !ours || len(given) == 0 || strings.TrimSpace(given[0]) == "" {
			continue
		}
		f, known := fields.Named(at.Question.Schema, name)
		if !known {
			return nil, &protocol.Error{Code: protocol.CodeInvalid, Message: "the form has no field " + name}
		}
		if value[name], err = f.Value(strings.ReplaceAll(given[0], "\r\n", "\n")); err != nil {
			return nil, &protocol.Error{Code: protocol.CodeInvalid, Message: name + ": " + err.Error()}
		}
	}
	return value, nil
}
