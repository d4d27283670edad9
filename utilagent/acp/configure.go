package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// modes are the names under which agents offer what a permission means, best first.
var modes = map[cliagent.Permission][]string{
	cliagent.Bypass:   {"bypassPermissions", "yolo", "agent-full-access", "full-access", "danger-full-access"},
	cliagent.Edits:    {"acceptEdits", "autoEdit", "auto_edit", "workspace-write"},
	cliagent.Readonly: {"plan", "read-only", "readonly"},
}

// choiceError is a mode or a model that the agent does not have.
type choiceError struct {
	what, value string
	offers      []string
}

func (e *choiceError) Error() string {
	if len(e.offers) == 0 {
		return fmt.Sprintf("the agent has no choice of a %s, so that it cannot be %s", e.what, e.value)
	}
	const most = 12
	list := strings.Join(e.offers[:min(len(e.offers), most)], ", ")
	if len(e.offers) > most {
		list += fmt.Sprintf(" and %d more", len(e.offers)-most)
	}
	return fmt.Sprintf("the agent has no %s %s. It offers: %s", e.what, e.value, list)
}

// configure sets the mode and the model of the session that was just opened.
// mode "" is the one that fits the permission, if the agent has one.
func (c *client) configure(ctx context.Context, p cliagent.Permission, mode, model string) error {
	must := mode != ""
	if !must {
		mode = c.modeFor(p)
	}
	if mode != "" {
		// What an agent may do in its present mode may be less than bypass, never
		// more than it asks us for; but a mode that restricts it must be set.
		if err := c.setMode(ctx, mode); err != nil && (must || p != cliagent.Bypass) {
			return err
		}
	}
	if model != "" {
		return c.setModel(ctx, model)
	}
	return nil
}

// modeFor is the session's mode that fits a permission; "" if it has none.
func (c *client) modeFor(p cliagent.Permission) string {
	offers := c.modeNames()
	for _, name := range modes[p] {
		if slices.Contains(offers, name) {
			return name
		}
	}
	return ""
}

func (c *client) modeNames() (names []string) {
	for _, m := range c.setup.Modes.Available {
		names = append(names, m.ID)
	}
	if len(names) == 0 {
		_, names = c.option("mode")
	}
	return names
}

// setMode sets the session's mode.
func (c *client) setMode(ctx context.Context, mode string) error {
	offers := c.modeNames()
	if !slices.Contains(offers, mode) {
		return &choiceError{what: "session mode", value: mode, offers: offers}
	}
	if len(c.setup.Modes.Available) == 0 {
		option, _ := c.option("mode")
		return c.setOption(ctx, option, mode)
	}
	if c.setup.Modes.Current == mode {
		return nil
	}
	params := map[string]string{"sessionId": c.session, "modeId": mode}
	if err := c.conn.call(ctx, "session/set_mode", params, nil); err != nil {
		return fmt.Errorf("set the session mode %s: %w", mode, err)
	}
	return nil
}

// setModel sets the session's model, in one of the two ways that agents have.
func (c *client) setModel(ctx context.Context, model string) error {
	option, offers := c.option("model")
	if slices.Contains(offers, model) {
		return c.setOption(ctx, option, model)
	}
	for _, m := range c.setup.Models.Available {
		offers = append(offers, m.ID)
	}
	if !slices.Contains(offers, model) {
		return &choiceError{what: "model", value: model, offers: offers}
	}
	if c.setup.Models.Current == model {
		return nil
	}
	params := map[string]string{"sessionId": c.session, "modelId": model}
	if err := c.conn.call(ctx, "session/set_model", params, nil); err != nil {
		return fmt.Errorf("set the model %s: %w", model, err)
	}
	return nil
}

// option is the session's setting of a category, with its values.
func (c *client) option(category string) (configOption, []string) {
	for _, o := range c.setup.Options {
		if o.Category == category {
			return o, choices(o.Options)
		}
	}
	return configOption{}, nil
}

func (c *client) setOption(ctx context.Context, o configOption, value string) error {
	if o.Current == value {
		return nil
	}
	params := map[string]string{"sessionId": c.session, "configId": o.ID, "value": value}
	if err := c.conn.call(ctx, "session/set_config_option", params, nil); err != nil {
		return fmt.Errorf("set %s to %s: %w", o.Category, value, err)
	}
	return nil
}

// model is the model that the session has, as far as the agent says.
func (c *client) model() string {
	if o, _ := c.option("model"); o.Current != "" {
		return o.Current
	}
	return c.setup.Models.Current
}
