package builtin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/react"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// work is everything that one run needs.
type work struct {
	kind     kind
	req      *agentkit.Request
	run      *runenv.Run
	endpoint config.Endpoint
	client   *llm.Client
	sessions react.Sessions
	record   record
	told     []llm.Message  // by this run
	tried    protocol.Bill  // of a try of the same step that was interrupted
	resolve  *react.Resolve // of an agent that ends with it

	// Of an agent with tools.
	workspace *tools.Workspace
	tools     *tools.Registry
	off       offlimits.List
	habits    habits // of the project
	commands  string // what may be run, for a person

	turns, continueTurns int
	budget               react.Budget // what is configured for a step, or what is left of the whole run's
	shared               shared
}

// shared says which parts of the budget are the whole run's.
type shared struct{ tokens, cost, time bool }

const defaultContinueTurns = 5

// open finds the model and opens the workspace.
func (a *agent) open(ctx context.Context, req *agentkit.Request) (*work, error) {
	run := runenv.Of(ctx)
	run.Extractor = llm.Extractor
	c, err := run.Config(ctx)
	if err != nil {
		return nil, err
	}
	endpoint, err := a.endpoint(c, req, run)
	if err != nil {
		return nil, err
	}
	w := &work{kind: a.kind, req: req, run: run, endpoint: endpoint, record: record{run: run}}
	if err := w.limit(c.Builtin); err != nil {
		return nil, err
	}
	agent := protocol.AgentName(a.name)
	var repeats *int // where nobody runs the agent again, it is patient
	if run.Env.Get(protocol.EnvRetries) != "" {
		repeats = &req.Retries
	}
	w.client = llm.New(endpoint, llm.Options{Repeats: repeats, Notify: func(text string) {
		fmt.Fprintf(run.Env.Stderr, "%s: %s\n", agent, text)
		// For who watches: the record of the question says it again.
		_ = req.Writing(ctx, protocol.Turn{Role: protocol.TurnSystem, Content: text})
	}})
	w.sessions = react.Sessions{
		Dir:   filepath.Join(run.Dirs.Sessions(), agent),
		NewID: run.NewID,
	}
	if a.resolves {
		if w.resolve, err = react.NewResolve(req.Schema); err != nil {
			return nil, err
		}
	}
	if !a.tools {
		return w, nil
	}
	if w.workspace, err = tools.OpenWorkspace(req.Cwd); err != nil {
		return nil, err
	}
	err = w.equip(ctx, c, a.more)
	if err == nil {
		w.habits, err = w.readHabits(c.Builtin)
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *work) close() error {
	if w.workspace == nil {
		return nil
	}
	return w.workspace.Close()
}

// limit reads the limits of a run.
func (w *work) limit(b *protocol.BuiltinConfig) error {
	w.turns, w.continueTurns = react.DefaultTurns, defaultContinueTurns
	if b != nil {
		if b.MaxTurns > 0 {
			w.turns = b.MaxTurns
		}
		if b.MaxContinue > 0 {
			w.continueTurns = b.MaxContinue
		}
		w.budget = react.Budget{Tokens: int64(b.MaxTokens), CostUSD: b.MaxCostUSD}
		if b.MaxTime != "" {
			var err error
			if w.budget.Time, err = time.ParseDuration(b.MaxTime); err != nil {
				return fmt.Errorf("config.yaml: builtin.maxTime: %w", err)
			}
		}
	}
	if !w.kind.tools {
		w.turns, w.continueTurns = 1, 1
	}
	return nil
}

// share keeps to what is left for the whole run, if that is less than a step may use. An
// interrupted try of this step has used some of it.
func (w *work) share() {
	left, b, tried := w.req.Budget, &w.budget, w.tried.AtLeast
	if left.Tokens != nil {
		if n := max(1, *left.Tokens-tried.Tokens()); b.Tokens == 0 || n < b.Tokens {
			b.Tokens, w.shared.tokens = n, true
		}
	}
	if left.CostUSD != nil {
		usd := *left.CostUSD
		if tried.CostUSD != nil {
			usd -= *tried.CostUSD
		}
		if usd = max(usd, smallest); b.CostUSD == 0 || usd < b.CostUSD {
			b.CostIfKnown = b.CostUSD == 0
			b.CostUSD, w.shared.cost = usd, true
		}
	}
	if left.TimeMs != nil {
		if t := time.Duration(max(1, *left.TimeMs-tried.DurationMs)) * time.Millisecond; b.Time == 0 || t < b.Time {
			b.Time, w.shared.time = t, true
		}
	}
}

// smallest is a budget of cost that is used up: zero would be none.
const smallest = 1e-9

// endpoint is the model for this role. The command line of the agent is the most
// specific, then come the config's overrides.
func (a *agent) endpoint(c protocol.Config, req *agentkit.Request, run *runenv.Run) (config.Endpoint, error) {
	alias := a.model
	if alias == "" {
		alias = config.AgentModel(c, req.Alias, req.Workflow.Name, req.Role)
	}
	if alias == "" {
		return config.Endpoint{}, fmt.Errorf(noModel, run.Dirs.Config())
	}
	return config.ResolveModel(c, alias, run.Env)
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

// loop is the loop as it always is here.
func (w *work) loop(ctx context.Context) react.Loop {
	w.share()
	l := react.Loop{
		Model: w.client, Tools: w.tools, Turns: w.turns, Budget: w.budget, Window: w.endpoint.ContextWindow,
		Resolve: w.resolve, Record: w.req.Turn, Mail: w.req.Mail, Asked: w.record.asked, Watch: w.writing(ctx),
		Redact: w.run.Secrets.Hide, Now: w.run.Env.Now,
	}
	if w.kind.tools && !w.plain() {
		l.Accept = acceptable
	}
	return l
}
