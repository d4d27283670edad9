package setup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/suggest"
)

// Person answers questions; a [Terminal] is one.
type Person interface {
	Line(ctx context.Context, question string) (string, error)
	Secret(ctx context.Context, question string) (string, error)
}

// dialog asks for what the answers do not say yet.
type dialog struct {
	*Setup
	person Person
	say    func(format string, args ...any)
}

// Dialog asks a person for everything. Enter keeps what is there, or takes what
// stands in brackets.
func (s *Setup) Dialog(ctx context.Context, p Person, say func(format string, args ...any)) (Answers, error) {
	d := dialog{s, p, say}
	var a Answers
	for _, ask := range []func(context.Context, *Answers) error{d.provider, d.key, d.model, d.agent} {
		if err := ask(ctx, &a); err != nil {
			return a, err
		}
	}
	return a, nil
}

// provider asks where the model is.
func (d dialog) provider(ctx context.Context, a *Answers) error {
	current := d.old.Models[d.alias()].Provider
	d.say("Where is the model?")
	for i, p := range Presets() {
		d.say("%4d  %-12s %s", i+1, p.Name, p.Title)
	}
	for {
		answer, err := d.person.Line(ctx, fmt.Sprintf("Number, name, or the address of another one [%s]: ", cmp.Or(current, "openai")))
		if err != nil {
			return err
		}
		answer = cmp.Or(answer, current, "openai")
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(Presets()) {
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
		d.say("unknown provider %q.%s", answer, near(answer, PresetNames()))
	}
}

func near(word string, names []string) string {
	if found := suggest.Nearest(word, names, 1); len(found) > 0 {
		return " Did you mean " + found[0] + "?"
	}
	return ""
}

// key asks for the key, unless there is one or none is needed.
func (d dialog) key(ctx context.Context, a *Answers) error {
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
		d.say("Without a key %s does not answer.", a.Provider)
	}
}

// model asks which of the models that the endpoint really has.
func (d dialog) model(ctx context.Context, a *Answers) error {
	current := ""
	if m := d.old.Models[d.alias()]; m.Provider == a.Provider {
		current = m.Name
	}
	names := d.offered(ctx, *a)
	for i, name := range names {
		d.say("%4d  %s", i+1, name)
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
		case answer == "":
			return nil
		case notNumber == nil && n >= 1 && n <= len(names):
			a.Model = names[n-1]
			return nil
		case len(names) > 0 && !slices.Contains(names, answer):
			d.say("%s does not list %q.%s", a.Provider, answer, near(answer, names))
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

// offered lists the models that can talk, as the endpoint names them.
func (d dialog) offered(ctx context.Context, a Answers) []string {
	e, err := d.endpoint(a)
	if err != nil {
		d.say("%v", err)
		return nil
	}
	names, err := d.Models(ctx, e)
	if err != nil {
		d.say("The models of %s cannot be listed: %v", a.Provider, err)
		return nil
	}
	return slices.DeleteFunc(names, silent)
}

// silent tells models that no conversation can be held with, by what people
// call them: there is no other sign.
func silent(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"embed", "whisper", "tts", "dall-e", "image", "moderation", "rerank", "audio", "speech", "-ocr", "video", "asr"},
		func(word string) bool { return strings.Contains(name, word) })
}

// endpoint is what the answers lead to so far.
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

// agent asks who plays the roles.
func (d dialog) agent(ctx context.Context, a *Answers) error {
	var names []string
	for _, program := range d.Installed {
		names = append(names, strings.TrimPrefix(program, protocol.AgentPrefix))
	}
	current := cmp.Or(d.old.DefaultAgent, "builtin")
	if len(names) == 0 {
		d.say("No agent is on PATH yet: go install %s/cmd/uwf-builtin@latest", protocol.ModulePath)
	} else {
		d.say("Installed agents:")
	}
	for i, name := range names {
		d.say("%4d  %s", i+1, name)
	}
	answer, err := d.person.Line(ctx, "Agent that plays the roles ["+current+"]: ")
	if err != nil {
		return err
	}
	answer = cmp.Or(answer, current)
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(names) {
		answer = names[n-1]
	}
	a.Agent = answer
	return nil
}
