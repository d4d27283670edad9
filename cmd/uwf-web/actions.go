package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
	fields "github.com/united-workforce/uwf/util/form"
)

// form is what a person can answer on the page of a thread.
type form struct {
	ID     string // that begins the names of its places on the page
	Action string // where it is posted
	Token  string // of the pages
	Verb   string // what is posted
	Label  string // of the field for words; "": there is none
	Button string
	Head   protocol.Hash // that the person has seen
	Fields []field       // of a role that a person plays
	More   bool          // the thread has cost what it may, and can be granted more
}

// formOf is [formOf] on a page of this server.
func (s *server) formOf(at protocol.StepOutput) *form {
	f := formOf(at)
	if f != nil {
		f.ID, f.Action, f.Token = at.Thread+"-", s.link("thread", at.Thread, f.Verb), s.token
	}
	return f
}

// field asks for one value.
type field struct {
	Name, Label, Note string
	Choices           []string
	Required, Long    bool
}

// formOf is what a thread waits for; nil: nothing can be said to it now.
func formOf(at protocol.StepOutput) *form {
	f := &form{Head: at.Head}
	switch {
	case at.Status == protocol.StatusRunning, at.Status == protocol.StatusCorrupt, at.Status == protocol.StatusCancelled:
		return nil
	case at.Question != nil && at.Question.Schema != nil:
		f.Verb, f.Button, f.Fields = "answer", "Answer", fieldsOf(at.Question.Schema)
	case at.Question != nil:
		f.Verb, f.Label, f.Button = "resume", "Your answer", "Answer"
	case at.Status == protocol.StatusSuspended:
		f.Verb, f.Button = "continue", "Continue"
		f.More = at.Error != nil && at.Error.Code == protocol.CodeLimit
	case at.Status == protocol.StatusCompleted:
		f.Verb, f.Label, f.Button = "resume", "Next instruction", "Continue"
	default:
		f.Verb, f.Button = "continue", "Continue"
		f.More = at.Status == protocol.StatusRateLimited && at.Error != nil && at.Error.Code == protocol.CodeLimit
	}
	return f
}

// fieldsOf are the fields of a schema, those of its variants, too: which one is meant is
// known only when the form is sent, and uwf judges it then.
func fieldsOf(schema any) []field {
	var out []field
	add := func(given map[string]any) {
		for _, f := range fields.Fields(schema, given, protocol.StatusKey) {
			i := slices.IndexFunc(out, func(o field) bool { return o.Name == f.Name })
			if i >= 0 {
				continue
			}
			note := htmlpage.Line(f.Description, 500)
			if kind := f.Kind(); kind != "" && len(f.Choices) == 0 && kind != "a text" {
				note = strings.TrimSpace(note + " (" + kind + ")")
			}
			out = append(out, field{
				Name: f.Name, Label: htmlpage.Line(f.Name, htmlpage.Longest), Note: note, Choices: f.Choices,
				Required: f.Required && len(given) == 0, Long: len(f.Choices) == 0 && (len(f.Types) == 0 ||
					slices.Contains(f.Types, "string")),
			})
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

// act does one thing to a thread, by starting uwf. Whatever runs an agent runs in the
// background: it is not ours to end.
func (s *server) act(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !validThread(id) {
		s.fail(w, notFound("there is no such thread"))
		return
	}
	args, stdin, err := s.command(r, id)
	if err != nil {
		s.fail(w, err)
		return
	}
	done, err := s.start(r.Context(), args, stdin)
	if err != nil {
		s.notDone(w, err, s.link("thread", id))
		return
	}
	if said := done.said(r.PathValue("verb")); said != nil {
		s.show(w, "done", "Done", "", doneBody{Facts: said, Back: s.link("thread", id)})
		return
	}
	if done.Thread != "" && validThread(done.Thread) {
		id = done.Thread // a new one
	}
	http.Redirect(w, r, s.link("thread", id), http.StatusSeeOther)
}

// notDone says why uwf has refused.
func (s *server) notDone(w http.ResponseWriter, err error, back string) {
	s.showAs(w, http.StatusUnprocessableEntity, "problem", "It was not done", "",
		problem{Message: htmlpage.TextOf(err.Error(), most).Body, Hints: hintsOf(err), Back: back})
}

// command is the command line of what a form asks for, and what uwf reads.
func (s *server) command(r *http.Request, id string) (args []string, stdin string, err error) {
	text := func(name string) string { return strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n") }
	goOn := []string{"--until-end", "--background"}
	switch r.PathValue("verb") {
	case "answer":
		head, err := protocol.ParseHash(r.PostFormValue("head"))
		if err != nil {
			return nil, "", err
		}
		value, err := s.answer(r, id)
		return append([]string{"thread", "answer", id, "--if-head", string(head), "--file", "-"}, goOn...), value, err
	case "resume":
		return []string{"thread", "resume", id, "--prompt", "-", "--background"}, text("text"), nil
	case "continue":
		args := []string{"thread", "resume", id, "--background"}
		if r.PostFormValue("more") != "" {
			args = append(args, "--raise-limit")
		}
		return args, "", nil
	case "message":
		return []string{"thread", "message", id, "-"}, text("text"), nil
	case "retry":
		which := id
		if r.PostFormValue("step") != "" {
			n, err := s.numberOf(r, id)
			if err != nil {
				return nil, "", err
			}
			which += "@" + strconv.Itoa(n)
		}
		return append([]string{"thread", "retry", which, "--prompt", "-"}, goOn...), text("text"), nil
	case "stop", "undo", "redo", "seal":
		return []string{"thread", r.PathValue("verb"), id}, "", nil
	case "apply":
		args := []string{"thread", "apply", id}
		if branch := strings.TrimSpace(text("branch")); branch != "" {
			args = append(args, "--branch="+branch)
		}
		return args, "", nil
	case "fork", "replay":
		step, err := protocol.ParseHash(r.PostFormValue("step"))
		if err != nil {
			return nil, "", err
		}
		if r.PathValue("verb") == "fork" {
			return []string{"thread", "fork", string(step)}, "", nil
		}
		return []string{"thread", "replay", id, "--from", string(step), "--background"}, "", nil
	}
	return nil, "", notFound("there is no such action")
}

// numberOf is the place of the step that a page has shown in its thread, which may have
// gone another way since.
func (s *server) numberOf(r *http.Request, id string) (int, error) {
	step, err := protocol.ParseHash(r.PostFormValue("step"))
	if err != nil {
		return 0, err
	}
	head, err := s.engine.Reader.Head(r.Context(), id)
	if err != nil {
		return 0, err
	}
	t, err := thread.Open(r.Context(), s.engine.Reader.Store, head)
	if err != nil {
		return 0, err
	}
	for at, err := range t.Steps(r.Context()) {
		if err != nil {
			return 0, err
		}
		if at.Hash == step {
			return at.Index + 1, nil
		}
	}
	return 0, notFound("the thread has this step no more")
}

// answer is the answer of a form as JSON. What was left empty is not in it.
func (s *server) answer(r *http.Request, id string) (string, error) {
	at, err := s.engine.Reader.Show(r.Context(), id)
	if err != nil {
		return "", err
	}
	if at.Question == nil || at.Question.Schema == nil {
		return "", &protocol.Error{Code: protocol.CodeFailed, Message: "the thread asks for no form any more"}
	}
	value := map[string]any{}
	for name, given := range r.PostForm {
		name, ours := strings.CutPrefix(name, "field.")
		if !ours || len(given) == 0 || strings.TrimSpace(given[0]) == "" {
			continue
		}
		f, known := fields.Named(at.Question.Schema, name)
		if !known {
			return "", &protocol.Error{Code: protocol.CodeInvalid, Message: "the form has no field " + name}
		}
		if value[name], err = f.Value(strings.ReplaceAll(given[0], "\r\n", "\n")); err != nil {
			return "", &protocol.Error{Code: protocol.CodeInvalid, Message: name + ": " + err.Error()}
		}
	}
	data, err := json.Marshal(value)
	return string(data), err
}

// told is what uwf has printed.
type told struct {
	Thread string `json:"thread"`
	Seal   string `json:"seal"`
	Branch string `json:"branch"`
	Commit string `json:"commit"`
}

// fact is a line of what was done.
type fact struct{ Name, Value string }

// doneBody says what was done, where the page of the thread does not show it.
type doneBody struct {
	Facts []fact
	Back  string
}

func (t told) said(verb string) []fact {
	line := func(text string) string { return htmlpage.Line(text, htmlpage.LongestTitle) }
	switch verb {
	case "seal":
		return []fact{{"Seal", line(t.Seal)}}
	case "apply":
		return []fact{{"Branch", line(t.Branch)}, {"Commit", line(t.Commit)}}
	}
	return nil
}

// refusal is what uwf has said when it refused, which its last line says to programs.
func refusal(stderr string) error {
	stderr = strings.TrimSpace(stderr)
	var last struct {
		Error struct{ Message, Hint string }
	}
	line := stderr[strings.LastIndexByte(stderr, '\n')+1:]
	if json.Unmarshal([]byte(line), &last) != nil || last.Error.Message == "" {
		return errors.New(stderr)
	}
	return &protocol.Error{Code: protocol.CodeFailed, Message: last.Error.Message,
		Hints: strings.FieldsFunc(last.Error.Hint, func(r rune) bool { return r == '\n' })}
}

// startPatience is how long uwf may take until an agent has begun.
const startPatience = 2 * time.Minute

// start runs uwf and returns what it prints. The person's browser may go away: what was
// begun is done.
func (s *server) start(ctx context.Context, args []string, stdin string) (told, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startPatience)
	defer cancel()
	dirs := s.engine.Reader.Dirs
	cmd := exec.CommandContext(ctx, s.uwf, append([]string{"--home", dirs.Home, "--store", dirs.Store, "--format",
		"json"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.env.Dir, s.env.Environ, strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	err := cmd.Run()
	var out told
	_ = json.Unmarshal(stdout.Bytes(), &out) // of an error, there is none
	var failed *exec.ExitError
	switch {
	case err == nil, errors.As(err, &failed) && out.Thread != "": // it says where the thread stands now
		return out, nil
	case stderr.Len() > 0:
		return out, refusal(stderr.String())
	}
	return out, err
}
