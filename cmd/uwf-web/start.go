package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/dryrun"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	fields "github.com/united-workforce/uwf/util/formfields"
)

// startPage is the form that starts a run of a workflow.
type startPage struct {
	Workflows                   []string // names to choose from
	Name, About, Dir            string
	Hash                        string // of the workflow that the page shows
	Once                        string // of this form: it starts one run only
	Task                        string
	Fields                      []field // inputs
	Roles                       []startRole
	Agents                      []string // names in the config
	Modes                       []string
	Mode                        string
	MaxCost, MaxTokens, MaxTime string
	Plan                        *dryrun.Plan // nil before the dry run
	Problem                     string
	Hints                       []string
}

// Optioned reports whether an option is set, so that it is in view.
func (p startPage) Optioned() bool {
	return p.MaxCost+p.MaxTokens+p.MaxTime != "" || p.Mode != worktree.ModeDefault ||
		slices.ContainsFunc(p.Roles, func(r startRole) bool { return r.Agent != "" })
}

// startRole is a role played by an agent. An Agent of "" uses the one from the config.
type startRole struct{ Name, Label, Agent string }

// starting is the run described by the form.
type starting struct {
	dryrun.Run
	name      string
	workspace worktree.Options
}

// start shows the form, filled in as it was sent. POST with do=plan adds the dry run; do=start starts the run.
func (s *server) start(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), startPatience)
	defer cancel()
	c := catalog.Of(s.engine)
	c.Note, c.Warn = nil, nil
	items, err := c.List(ctx)
	if err != nil {
		return err
	}
	p := startPage{Name: r.FormValue("workflow"), Dir: s.env.Dir, Modes: []string{worktree.ModeDefault, worktree.ModeInPlace,
		worktree.InWorktree, worktree.ModeNone}}
	for _, it := range items[:min(len(items), mostWorkflows)] {
		p.Workflows = append(p.Workflows, it.Name)
	}
	if p.Name == "" {
		return s.show(w, "start", "Start a run", "", p)
	}
	_, def, err := s.definition(ctx, p.Name, func(string) {})
	if err != nil {
		return err
	}
	p.Hash, p.Once = string(def.Hash), rand.Text()
	status := http.StatusOK
	run, err := s.startingOf(ctx, r, &p, def.Definition)
	if r.Method == http.MethodPost && err == nil {
		if r.PostFormValue("do") == "start" {
			return s.startRun(ctx, w, r, run)
		}
		plan, failed := dryrun.Of(ctx, s.engine, c, run.Run)
		if err = failed; err == nil {
			p.Plan = &plan
		}
	}
	if r.Method == http.MethodPost && err != nil {
		status, p.Problem, p.Hints = http.StatusUnprocessableEntity, htmlpage.TextOf(err.Error(), most).Body, hintsOf(err)
	}
	return s.showAs(w, status, "start", "Start "+htmlpage.Line(def.Definition.Name, htmlpage.Longest), "", p)
}

// startingOf parses the form into the page and the run. It accepts only agents from the config, and no
// commands.
func (s *server) startingOf(ctx context.Context, r *http.Request, p *startPage,
	def workflow.Definition) (run starting, err error) {
	var wrong []string
	refuse := func(what, given string) {
		wrong = append(wrong, what+": "+strconv.Quote(htmlpage.Line(given, htmlpage.Longest)))
	}
	p.About, p.Task = htmlpage.Line(def.Description, htmlpage.LongestTitle), posted(r, "task")
	p.MaxCost = strings.TrimSpace(r.PostFormValue("max-cost"))
	p.MaxTokens = strings.TrimSpace(r.PostFormValue("max-tokens"))
	p.MaxTime = strings.TrimSpace(r.PostFormValue("max-time"))
	p.Mode = cmp.Or(r.PostFormValue("workspace"), worktree.ModeDefault)
	run = starting{name: p.Name, workspace: worktree.Options{Mode: p.Mode}, Run: dryrun.Run{
		Definition: def, Env: s.env, System: dryrun.System(s.env.Exe), Hints: func(e *protocol.Error) []string { return hintsOf(e) },
		Step: engine.StepOptions{Wake: true, Agents: map[string]string{}},
	}}
	settings, err := s.engine.Reader.Config(ctx)
	if err != nil {
		return run, err
	}
	p.Agents = slices.Sorted(maps.Keys(settings.Agents))
	for _, role := range dryrun.Agents(def) {
		agent := r.PostFormValue("agent." + role)
		p.Roles = append(p.Roles, startRole{role, htmlpage.Line(role, htmlpage.Longest), agent})
		switch {
		case agent == "":
		case slices.Contains(p.Agents, agent):
			run.Step.Agents[role] = agent
		default:
			refuse("the config has no agent", agent)
		}
	}
	if !slices.Contains(p.Modes, p.Mode) {
		refuse("there is no workspace mode", p.Mode)
	}
	limit := func(what, text string, ok bool) {
		if text != "" && !ok {
			refuse(what+" is not valid", text)
		}
	}
	cost, err := strconv.ParseFloat(strings.TrimPrefix(p.MaxCost, "$"), 64)
	limit("the cost limit", p.MaxCost, err == nil && 0 < cost && cost <= protocol.MaxCostUSD)
	tokens, err := strconv.ParseInt(p.MaxTokens, 10, 64)
	limit("the token limit", p.MaxTokens, err == nil && tokens > 0)
	took, err := time.ParseDuration(p.MaxTime)
	limit("the time limit", p.MaxTime, err == nil && took >= time.Millisecond)
	run.Limits = protocol.Limits{MaxCostUSD: cost, MaxTokens: tokens, MaxTimeMs: took.Milliseconds()}
	p.Fields, run.Given, err = inputsOf(r, def)
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	for name := range r.PostForm {
		input, isInput := strings.CutPrefix(name, "input.")
		role, isAgent := strings.CutPrefix(name, "agent.")
		if isInput && !slices.ContainsFunc(p.Fields, func(f field) bool { return f.Name == input }) {
			refuse("the workflow has no input", input)
		}
		if isAgent && !slices.ContainsFunc(p.Roles, func(of startRole) bool { return of.Name == role }) {
			refuse("the workflow has no role for an agent", role)
		}
	}
	if seen := r.PostFormValue("hash"); seen != "" && seen != p.Hash {
		wrong = append(wrong, "the workflow has changed since this page was loaded: check the run again")
	}
	if run.Start.Prompt = p.Task; strings.TrimSpace(strings.ReplaceAll(p.Task, "\x00", "")) == "" {
		wrong = append(wrong, "the task is empty")
	}
	if len(wrong) > 0 {
		return run, &protocol.Error{Code: protocol.CodeUsage, Message: strings.Join(wrong, "\n")}
	}
	run.Start.Cwd, err = engine.RealDir(s.env.Dir)
	return run, err
}

// inputsOf returns the fields for the inputs, required ones first, and the submitted values.
func inputsOf(r *http.Request, def workflow.Definition) (form []field, given map[string]any, err error) {
	given = map[string]any{}
	declared := dryrun.Declared(def)
	for i, name := range slices.Sorted(maps.Keys(declared)) {
		f := fields.Of(declared[name].Schema)
		f.Name, f.Description, f.Required = name, declared[name].Description, declared[name].Default == nil
		f.Default = htmlpage.ValueText(declared[name].Default, htmlpage.Longest).Body
		in := fieldOf(f)
		in.Post, in.ID, in.Value = "input."+name, "input-"+strconv.Itoa(i), posted(r, "input."+name)
		if r.Method == http.MethodGet && len(in.Choices) > 0 {
			in.Value = f.Default
		}
		if strings.TrimSpace(in.Value) != "" {
			value, wrong := f.Value(in.Value)
			if given[name] = value; wrong != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", in.Label, wrong))
			}
		}
		form = append(form, in)
	}
	slices.SortStableFunc(form, func(a, b field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return form, given, err
}

// startRun starts a thread and a worker that runs it to its end, as uwf run --background does.
func (s *server) startRun(ctx context.Context, w http.ResponseWriter, r *http.Request, run starting) error {
	once := htmlpage.Line(r.PostFormValue("once"), htmlpage.Longest) // a program need not send one
	if _, sent := s.started.LoadOrStore(once, true); sent && once != "" {
		http.Redirect(w, r, s.base+"threads", http.StatusSeeOther) // the form was sent twice
		return nil
	}
	var at protocol.ThreadStarted
	e, err := s.open(ctx)
	if err == nil {
		err = confirm(ctx, e, r)
	}
	if err == nil {
		at, err = catalog.Of(e).Start(ctx, e, run.name, run.Start, engine.StartOptions{
			Limits: run.Limits, Workspace: run.workspace, Check: func(start *protocol.Start) error {
				if err := dryrun.Fill(ctx, e, start, run.Given); err != nil {
					return err
				}
				return dryrun.Check(ctx, e, *start, run.Limits, run.Step)
			},
		})
	}
	if err == nil {
		_, err = e.Background(ctx, at.Thread, engine.Work{Steps: engine.UntilEnd, StepOptions: run.Step})
	}
	back, action := s.base+"start?"+url.Values{"workflow": {run.name}}.Encode(), s.base+"start"
	if at.Thread == "" {
		s.started.Delete(once) // to be sent again, perhaps with a confirmation
	} else {
		back = s.link("thread", at.Thread)
		action = back + "/continue"
	}
	return s.done(w, r, err, back, action)
}
