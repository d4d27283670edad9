package builtin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/threadid"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// work is everything that one run needs.
type work struct {
	req       *agentkit.Request
	endpoint  config.Endpoint
	client    *llm.Client
	workspace *tools.Workspace
	tools     *tools.Registry
	sessions  react.Sessions
	redact    *strings.Replacer

	turns, continueTurns int
}

const defaultContinueTurns = 5

// open finds the model and opens the workspace.
func (a *agent) open(ctx context.Context, req *agentkit.Request) (*work, error) {
	c, err := req.Config(ctx)
	if err != nil {
		return nil, err
	}
	endpoint, err := a.endpoint(c, req)
	if err != nil {
		return nil, err
	}
	w := &work{
		req: req, endpoint: endpoint, redact: redactor(secrets(c, req)),
		turns: react.DefaultTurns, continueTurns: defaultContinueTurns,
	}
	if b := c.Builtin; b != nil && b.MaxTurns > 0 {
		w.turns = b.MaxTurns
	}
	if b := c.Builtin; b != nil && b.MaxContinue > 0 {
		w.continueTurns = b.MaxContinue
	}
	w.client = llm.New(endpoint, llm.Options{Notify: func(text string) {
		fmt.Fprintf(req.Env.Stderr, "%s: %s\n", protocol.AgentName(name), text)
	}})
	w.sessions = react.Sessions{
		Dir:   filepath.Join(req.Dirs.Sessions(), protocol.AgentName(name)),
		NewID: func() (string, error) { return threadid.New(req.Env.Now(), req.Env.Rand) },
	}
	if w.workspace, err = tools.OpenWorkspace(req.Cwd); err != nil {
		return nil, err
	}
	if w.tools, err = toolbox(w.workspace, c, req); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *work) close() error { return w.workspace.Close() }

// endpoint is the model for this role. The command line of the agent is the most
// specific, then come the config's overrides.
func (a *agent) endpoint(c protocol.Config, req *agentkit.Request) (config.Endpoint, error) {
	alias := a.model
	if alias == "" {
		alias = config.AgentModel(c, req.Alias, req.Workflow.Name, req.Role)
	}
	if alias == "" {
		return config.Endpoint{}, fmt.Errorf(noModel, req.Dirs.Config())
	}
	return config.ResolveModel(c, alias, req.Env)
}

const noModel = `no model is configured. Put lines like these into %s:

providers:
  openai:
    baseUrl: https://api.openai.com/v1
    apiKeyEnv: OPENAI_API_KEY   # the variable that holds the key; leave it out if there is none
models:
  default:
    provider: openai
    name: NAME-OF-THE-MODEL
defaultModel: default`

// begin opens the conversation: the role's own of its last turn, else a new one.
func (w *work) begin(ctx context.Context) (*react.Session, error) {
	if w.req.SessionID != "" {
		session, err := w.sessions.Copy(w.req.SessionID, llm.User(w.req.User))
		if err == nil || !errors.Is(err, react.ErrNoSession) {
			return session, err
		}
		fmt.Fprintf(w.req.Env.Stderr, "%s: %v; beginning a new one with the whole history\n", protocol.AgentName(name), err)
		if err := w.req.StartOver(ctx); err != nil {
			return nil, err
		}
	}
	return w.sessions.New(llm.System(w.system()), llm.User(w.req.User))
}

// loop is the loop as it always is here.
func (w *work) loop() react.Loop {
	return react.Loop{
		Model: w.client, Tools: w.tools,
		Accept: acceptable, Record: w.req.Turn, Redact: w.redact.Replace,
	}
}

// toolbox holds the tools that this agent may use. permission in the config
// takes tools away; it never gives more than commands are allowed anyway.
func toolbox(ws *tools.Workspace, c protocol.Config, req *agentkit.Request) (*tools.Registry, error) {
	commands := tools.Commands{
		Shell:  req.Env.Get("UWF_BUILTIN_ALLOW_SHELL") == "1",
		Refuse: agentkit.RefuseEngine,
		Now:    req.Env.Now,
		Env:    tools.CommandEnv(req.Env.Environ, config.KeyVariables(c), secrets(c, req)),
	}
	if c.Builtin != nil {
		commands.Allow = c.Builtin.AllowCommands
	}
	most := tools.Runs
	switch c.Agents[req.Alias].Permission {
	case "readonly":
		most = tools.Reads
	case "edits":
		most = tools.Writes
	}
	registry, err := tools.NewRegistry()
	for _, t := range []tools.Tool{
		tools.ReadFile(ws), tools.WriteFile(ws), tools.EditFile(ws), tools.ListDir(ws), tools.RunCommand(ws, commands),
	} {
		if t.Spec().Effect <= most {
			err = errors.Join(err, registry.Add(t))
		}
	}
	return registry, err
}

// secrets are the keys of all models.
func secrets(c protocol.Config, req *agentkit.Request) []string {
	return slices.DeleteFunc(config.APIKeys(c, req.Env), func(k string) bool { return len(k) < 8 }) // shorter ones protect nothing and occur anywhere
}

func redactor(keys []string) *strings.Replacer {
	var pairs []string
	for _, k := range keys {
		pairs = append(pairs, k, "[hidden key]")
	}
	return strings.NewReplacer(pairs...)
}
