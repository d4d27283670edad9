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

// Dialog asks a person for what the answers do not say yet: who plays, and then only
// what that needs. Enter keeps what is there, or takes what stands in brackets.
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

// players asks who plays the roles.
func (d dialog) players(ctx context.Context, a *Answers) error {
	if a.Agent != "" {
		return nil
	}
	found := d.Players(ctx)
	current := d.old.DefaultAgent
	d.say("Who plays the roles?")
	for i, p := range found {
		state := ""
		if p.Problem != "" {
			state = "   (" + p.Problem + ")"
		} else if current == "" {
			current = p.Name
		}
		d.say("%4d  %-12s %s%s", i+1, p.Name, p.Title, state)
	}
	current = cmp.Or(current, builtin)
	d.say("Separate several with commas: the first is the default, the others can be chosen for a role or a run.")
	for {
		answer, err := d.person.Line(ctx, "Number or name ["+current+"]: ")
		if err != nil {
			return err
		}
		names, wrong := d.chosen(cmp.Or(answer, current), found)
		if wrong != "" {
			d.say("%s", wrong)
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

// chosen reads numbers and names of players; wrong says what is not one.
func (d dialog) chosen(answer string, found []Player) (names []string, wrong string) {
	var known []string
	for _, p := range found {
		known = append(known, p.Name)
	}
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' }) {
		name := strings.TrimPrefix(word, protocol.AgentPrefix)
		if n, err := strconv.Atoi(word); err == nil {
			if n < 1 || n > len(found) {
				return nil, fmt.Sprintf("there is no number %d: 1 to %d.", n, len(found))
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

// sure warns of players that cannot play yet.
func (d dialog) sure(ctx context.Context, names []string, found []Player) (bool, error) {
	for _, p := range found {
		if p.Problem == "" || !slices.Contains(names, p.Name) {
			continue
		}
		d.say("%s cannot play yet: %s.", p.Name, p.Problem)
		if p.Do != "" {
			d.say("   %s", p.Do)
		}
		answer, err := d.person.Line(ctx, "Save it anyway? [y/N]: ")
		if err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
			return false, err
		}
	}
	return true, nil
}

// provider asks where the model is.
func (d dialog) provider(ctx context.Context, a *Answers) error {
	if a.Provider != "" {
		return nil
	}
	current := cmp.Or(d.old.Models[d.alias()].Provider, d.withKey())
	d.say("\nWhere is the model?")
	for i, p := range Presets() {
		d.say("%4d  %-12s %s", i+1, p.Name, p.Title)
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
			d.say("Type a number, a name or an address.")
			continue
		}
		if n, err := strconv.Atoi(answer); err == nil {
			if n < 1 || n > len(Presets()) {
				d.say("there is no number %d: 1 to %d.", n, len(Presets()))
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
		d.say("unknown provider %q.%s", answer, near(answer, PresetNames()))
	}
}

// withKey is the first provider whose key is in the environment, "" if none is.
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

// key asks for the key, unless there is one or none is needed.
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
		d.say("Without a key %s does not answer.", a.Provider)
	}
}

// model asks which of the models that the endpoint really has.
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
			d.say("A model is needed: type a number of the list, or its name at %s.", a.Provider)
		case answer == "" && current == d.old.Models[d.alias()].Name:
			return nil
		case answer == "":
			a.Model = current
			return nil
		case notNumber == nil && len(names) > 0 && !slices.Contains(names, answer) && (n < 1 || n > len(names)):
			d.say("there is no number %d: 1 to %d.", n, len(names))
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
