package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/suggest"
)

// Person answers questions; [Terminal] implements it.
type Person interface {
	Line(ctx context.Context, question string) (string, error)
	Secret(ctx context.Context, question string) (string, error)
}

// dialog asks for missing answers.
type dialog struct {
	*Setup
	person Person
	printf func(format string, args ...any)
}

// Dialog asks for missing answers: which agents run the roles, and then only what those need. Enter keeps the
// current value or takes the one in brackets.
func (s *Setup) Dialog(ctx context.Context, p Person, say func(format string, args ...any), a Answers) (Answers, error) {
	d := dialog{s, p, say}
	if err := d.players(ctx, &a); err != nil {
		return a, err
	}
	asks := []func(context.Context, *Answers) error{d.provider, d.key, d.model, d.commands}
	if !s.asksModels(a.agents()) {
		asks = asks[3:]
	}
	for _, ask := range asks {
		if err := ask(ctx, &a); err != nil {
			return a, err
		}
	}
	return a, nil
}

// players asks which agents run the roles.
func (d dialog) players(ctx context.Context, a *Answers) error {
	if a.Agent != "" {
		return nil
	}
	found := d.Players(ctx)
	current := d.old.DefaultAgent
	d.printf("Who plays the roles?")
	for i, p := range found {
		state := ""
		if p.Problem != "" {
			state = "   (" + p.Problem + ")"
		} else if current == "" {
			current = p.Name
		}
		d.printf("%4d  %-12s %s%s", i+1, p.Name, p.Title, state)
	}
	current = cmp.Or(current, builtin)
	d.printf("Separate several with commas: the first is the default, the others can be chosen for a role or a run.")
	for {
		answer, err := d.person.Line(ctx, "Number or name ["+current+"]: ")
		if err != nil {
			return err
		}
		names, wrong := d.chosen(cmp.Or(answer, current), found)
		if wrong != "" {
			d.printf("%s", wrong)
			continue
		}
		sure, err := d.sure(ctx, names, found)
		if err != nil {
			return err
		}
		if sure {
			a.Agent, a.More = names[0], strings.Join(names[1:], ",")
			return nil
		}
	}
}

// chosen parses numbers and names of players. wrong is the first invalid one.
func (d dialog) chosen(answer string, found []Player) (names []string, wrong string) {
	var known []string
	for _, p := range found {
		known = append(known, p.Name)
	}
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' }) {
		name := strings.TrimPrefix(word, protocol.AgentPrefix)
		if n, err := strconv.Atoi(word); err == nil {
			if n < 1 || n > len(found) {
				return nil, fmt.Sprintf("Type a number from 1 to %[2]d, not %[1]d.", n, len(found))
			}
			name = found[n-1].Name
		}
		if d.knownAgent(name) != nil {
			return nil, fmt.Sprintf("unknown agent %q.%s", name, near(name, known))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, "Type a number or a name."
	}
	return names, ""
}

// sure warns about players that are not ready.
func (d dialog) sure(ctx context.Context, names []string, found []Player) (bool, error) {
	for _, p := range found {
		if p.Problem == "" || !slices.Contains(names, p.Name) {
			continue
		}
		d.printf("%s cannot play yet: %s.", p.Name, p.Problem)
		if p.Do != "" {
			d.printf("   %s", p.Do)
		}
		answer, err := d.person.Line(ctx, "Save it anyway? [y/N]: ")
		if err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
			return false, err
		}
	}
	return true, nil
}

// provider asks for the model's provider.
func (d dialog) provider(ctx context.Context, a *Answers) error {
	if a.Provider != "" {
		return nil
	}
	current := cmp.Or(d.old.Models[d.alias()].Provider, d.withKey())
	d.printf("\nWhere is the model?")
	for i, p := range Presets() {
		d.printf("%4d  %-12s %s", i+1, p.Name, p.Title)
	}
	for {
		question := "Number, name, or the address of another one: "
		if current != "" {
			question = fmt.Sprintf("Number, name, or the address of another one [%s]: ", current)
		}
		answer, err := d.person.Line(ctx, question)
		if err != nil {
			return err
		}
		if answer = cmp.Or(answer, current); answer == "" {
			d.printf("Type a number, a name or an address.")
			continue
		}
		if n, err := strconv.Atoi(answer); err == nil {
			if n < 1 || n > len(Presets()) {
				d.printf("Type a number from 1 to %[2]d, not %[1]d.", n, len(Presets()))
				continue
			}
			a.Provider = Presets()[n-1].Name
			return nil
		}
		_, isPreset := preset(answer)
		_, known := d.old.Providers[answer]
		switch {
		case isPreset || known:
			a.Provider = answer
			return nil
		case strings.Contains(answer, "://"):
			a.BaseURL = answer
			a.Provider, err = d.person.Line(ctx, "A name for it [custom]: ")
			a.Provider = cmp.Or(a.Provider, "custom")
			return err
		}
		d.printf("unknown provider %q.%s", answer, near(answer, PresetNames()))
	}
}

// withKey returns the first provider whose key is in the environment, or "".
func (d dialog) withKey() string {
	for _, p := range Presets() {
		if p.KeyEnv != "" && d.Env.Get(p.KeyEnv) != "" {
			return p.Name
		}
	}
	return ""
}

func near(word string, names []string) string {
	if found := suggest.Nearest(word, names, 1); len(found) > 0 {
		return " Did you mean " + found[0] + "?"
	}
	return ""
}

// key asks for the key if one is needed and missing.
func (d dialog) key(ctx context.Context, a *Answers) error {
	if a.APIKey != "" || a.APIKeyEnv != "" {
		return nil
	}
	known, isPreset := preset(a.Provider)
	was := d.old.Providers[a.Provider]
	if isPreset && known.KeyEnv == "" && was.APIKey == "" {
		return nil
	}
	kept := ""
	switch {
	case was.APIKey != "" || was.APIKeyEnv != "":
		kept = "Enter keeps the one that is there"
	case known.KeyEnv != "" && d.Env.Get(known.KeyEnv) != "":
		kept = "Enter takes it from " + known.KeyEnv + " in the environment"
	case !isPreset:
		kept = "Enter if it needs none"
	}
	for {
		question := "API key (not shown): "
		if kept != "" {
			question = "API key (not shown; " + kept + "): "
		}
		key, err := d.person.Secret(ctx, question)
		if err != nil {
			return err
		}
		a.APIKey = key
		if key != "" || kept != "" {
			return nil
		}
		d.printf("Without a key %s does not answer.", a.Provider)
	}
}

// model asks for a model that the endpoint offers.
func (d dialog) model(ctx context.Context, a *Answers) error {
	if a.Model != "" {
		return nil
	}
	current := ""
	if m := d.old.Models[d.alias()]; m.Provider == a.Provider {
		current = m.Name
	}
	names := d.offered(ctx, *a)
	if current == "" && len(names) == 1 {
		current = names[0]
	}
	for i, name := range names {
		d.printf("%4d  %s", i+1, name)
	}
	question := "Model: "
	if current != "" {
		question = "Model [" + current + "]: "
	}
	for {
		answer, err := d.person.Line(ctx, question)
		if err != nil {
			return err
		}
		n, notNumber := strconv.Atoi(answer)
		switch {
		case answer == "" && current == "":
			d.printf("A model is needed: type a number of the list, or its name at %s.", a.Provider)
		case answer == "" && current == d.old.Models[d.alias()].Name:
			return nil
		case answer == "":
			a.Model = current
			return nil
		case notNumber == nil && len(names) > 0 && !slices.Contains(names, answer) && (n < 1 || n > len(names)):
			d.printf("Type a number from 1 to %[2]d, not %[1]d.", n, len(names))
		case notNumber == nil && n >= 1 && n <= len(names):
			a.Model = names[n-1]
			return nil
		case len(names) > 0 && !slices.Contains(names, answer):
			d.printf("%s does not list %q.%s", a.Provider, answer, near(answer, names))
			sure, err := d.person.Line(ctx, "Use it anyway? [y/N]: ")
			if err != nil {
				return err
			}
			if !strings.HasPrefix(strings.ToLower(sure), "y") {
				continue
			}
			fallthrough
		default:
			a.Model = answer
			return nil
		}
	}
}

// offered lists the chat models of the endpoint.
func (d dialog) offered(ctx context.Context, a Answers) []string {
	e, err := d.endpoint(a)
	if err != nil {
		d.printf("%v", err)
		return nil
	}
	names, err := d.Models(ctx, e)
	if err != nil {
		d.printf("Cannot list the models of %s: %v", a.Provider, err)
		return nil
	}
	return slices.DeleteFunc(names, silent)
}

// silent reports whether a model's name suggests that it cannot chat; there is no better indication.
func silent(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"embed", "whisper", "tts", "dall-e", "image", "moderation", "rerank", "audio", "speech", "-ocr", "video", "asr"},
		func(word string) bool { return strings.Contains(name, word) })
}

// endpoint returns the endpoint for the answers so far.
func (s *Setup) endpoint(a Answers) (config.Endpoint, error) {
	was := s.old.Providers[a.Provider]
	known, _ := preset(a.Provider)
	p := protocol.Provider{
		BaseURL:   cmp.Or(a.BaseURL, was.BaseURL, known.BaseURL),
		APIKey:    cmp.Or(a.APIKey, was.APIKey),
		APIKeyEnv: cmp.Or(a.APIKeyEnv, was.APIKeyEnv),
	}
	switch {
	case a.APIKey != "" || p.APIKey != "":
		p.APIKeyEnv = ""
	case p.APIKeyEnv == "" && s.Env.Get(known.KeyEnv) != "":
		p.APIKeyEnv = known.KeyEnv
	}
	return config.ResolveModel(protocol.Config{
		Providers: map[string]protocol.Provider{a.Provider: p},
		Models:    map[string]protocol.Model{"m": {Provider: a.Provider, Name: cmp.Or(a.Model, "m")}},
	}, "m", s.Env)
}

// Player is an agent that can run roles on this machine, or could after a fix.
type Player struct {
	Name    string // as accepted by --agent
	Title   string // for display, with its version
	Problem string // why it is not ready, or ""
	Do      string // remedy for the problem
}

// builtin is uwf's own agent, which needs only a model.
const builtin = "builtin"

// FindPlayers finds agents that can run roles: the coding agents on PATH, uwf's own, and third-party agents.
// installed lists the agents on PATH. Adapters that run an arbitrary program are not included.
func FindPlayers(ctx context.Context, e env.Env, installed []string) []Player {
	adapters := slices.DeleteFunc(protocol.Adapters(), func(a protocol.Adapter) bool { return a.Program == "" })
	found := make([]*Player, len(adapters))
	var group sync.WaitGroup
	for i, adapter := range adapters {
		group.Go(func() { found[i] = look(ctx, adapter, e, installed) })
	}
	group.Wait()
	var players []Player
	for _, p := range found {
		if p != nil {
			players = append(players, *p)
		}
	}
	own := Player{Name: builtin, Title: "uwf's own agent, with your model (a key, or a server on this machine)"}
	if !slices.Contains(installed, protocol.AgentName(builtin)) {
		own.Problem, own.Do = "uwf-builtin is not on PATH", install(builtin)
	}
	players = append(players, own)
	for _, program := range installed {
		if !slices.Contains(protocol.OwnAgents(), program) {
			players = append(players, Player{Name: strings.TrimPrefix(program, protocol.AgentPrefix), Title: "another agent on PATH"})
		}
	}
	return players
}

// look queries an adapter about its program. It returns nil if the program is not installed.
func look(ctx context.Context, a protocol.Adapter, e env.Env, installed []string) *Player {
	name := strings.TrimPrefix(a.Name, protocol.AgentPrefix)
	p := &Player{Name: name, Title: a.Title}
	if !slices.Contains(installed, a.Name) {
		if _, err := proc.LookPath(a.Program, e.Dir, e.Environ); err != nil {
			return nil
		}
		p.Problem, p.Do = a.Name+", which drives it, is not on PATH", install(name)
		return p
	}
	switch found := discover.Ask(ctx, a.Name, nil, e); {
	case found.Err != nil:
		p.Problem, p.Do = found.Err.Error(), install(name)
	case found.Check == nil:
	case found.Check.Program == "":
		return nil
	default:
		p.Title = strings.TrimSpace(a.Title + " " + found.Check.Version)
		if len(found.Check.Problems) > 0 {
			p.Problem, p.Do = found.Check.Problems[0].What, found.Check.Problems[0].Do
		}
	}
	return p
}

// install returns the command that installs an agent of uwf.
func install(name string) string {
	return "go install " + protocol.ModulePath + "/cmd/" + protocol.AgentName(name) + "@latest"
}

// Preset is an endpoint with OpenAI's chat completions API.
type Preset struct {
	Name    string
	Title   string
	BaseURL string
	KeyEnv  string // the usual variable, or "" if no key is needed
}

// Presets returns the endpoints that setup offers, in menu order.
func Presets() []Preset {
	return []Preset{
		{"openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY"},
		{"openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
		{"anthropic", "Anthropic (its compatible endpoint)", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"},
		{"gemini", "Google Gemini (its compatible endpoint)", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"},
		{"deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
		{"groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"},
		{"mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"},
		{"ollama", "Ollama on this machine", "http://localhost:11434/v1", ""},
		{"vllm", "vLLM on this machine", "http://localhost:8000/v1", ""},
		{"lmstudio", "LM Studio on this machine", "http://localhost:1234/v1", ""},
		{"xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"},
		{"venice", "Venice", "https://api.venice.ai/api/v1", "VENICE_API_KEY"},
		{"dashscope", "DashScope", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"},
		{"siliconflow", "SiliconFlow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"},
		{"volcengine", "Volcengine", "https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"},
		{"kimi", "Kimi", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"},
		{"glm", "GLM", "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY"},
		{"stepfun", "StepFun", "https://api.stepfun.com/v1", "STEPFUN_API_KEY"},
		{"minimax", "MiniMax", "https://api.minimax.io/v1", "MINIMAX_API_KEY"},
	}
}

// preset finds an endpoint by name.
func preset(name string) (Preset, bool) {
	all := Presets()
	i := slices.IndexFunc(all, func(p Preset) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}

// PresetNames returns the names of all presets.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Agreeing is the [Person] for --yes: it answers every question with Enter. A question without a default is
// an error that lists the flags.
type Agreeing struct{ asked []string }

// Line answers a question.
func (a *Agreeing) Line(_ context.Context, question string) (string, error) {
	if strings.Contains(question, "[y/N]") || slices.Contains(a.asked, question) {
		return "", undecided(strings.TrimSpace(question))
	}
	a.asked = append(a.asked, question)
	return "", nil
}

// Secret answers the question for a key: keep it, or take it from the environment.
func (a *Agreeing) Secret(ctx context.Context, question string) (string, error) {
	return a.Line(ctx, question)
}

func undecided(question string) error {
	return cmdline.UsageError("--yes has no answer to: "+question,
		"use flags: --agent NAME --provider NAME --api-key-env VARIABLE --model NAME --commands all", "uwf setup --help")
}

// Terminal asks the user. Questions go to Out, which is stderr, because stdout is for results.
type Terminal struct {
	In  io.Reader
	Out io.Writer
}

// ErrNoMore reports that the input has ended.
var ErrNoMore = errors.New("no answer: unexpected end of input")

// Line reads a line. It returns when ctx is cancelled, without waiting for Enter.
func (t Terminal) Line(ctx context.Context, question string) (string, error) {
	fmt.Fprint(t.Out, question)
	return wait(ctx, func() (string, error) { return t.readLine() })
}

// Secret reads a line without echo.
func (t Terminal) Secret(ctx context.Context, question string) (string, error) {
	file, ok := t.In.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return "", errors.New("a key can be typed only on a terminal; use --api-key or an environment variable")
	}
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	fmt.Fprint(t.Out, question)
	secret, err := wait(ctx, func() (string, error) {
		text, err := term.ReadPassword(fd)
		if errors.Is(err, io.EOF) {
			err = ErrNoMore
		}
		return strings.TrimSpace(string(text)), err
	})
	fmt.Fprintln(t.Out)
	if ctx.Err() != nil { // restore the terminal's echo
		return "", errors.Join(err, term.Restore(fd, before))
	}
	return secret, err
}

// wait runs an uninterruptible read and returns when it or ctx ends.
func wait(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := read()
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// readLine reads byte by byte, because input after the line belongs to the next question, which may read a
// secret from the terminal itself.
func (t Terminal) readLine() (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := t.In.Read(b)
		if n == 1 && b[0] == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		line = append(line, b[:n]...)
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimSpace(string(line)), nil
		case errors.Is(err, io.EOF):
			return "", ErrNoMore
		case err != nil:
			return "", err
		}
	}
}
