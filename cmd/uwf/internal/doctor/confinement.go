package doctor

import "context"

// confinement tells what holds the commands of models back on this machine.
func (x *examination) confinement(context.Context) {
	const area = "confinement"
	if x.Confinement == nil {
		return
	}
	text, confined := x.Confinement()
	if !confined {
		x.warn(area, "uwf config set builtin.confine required refuses commands then; or run uwf in a container",
			"commands of models cannot be confined here (%s)", text)
		return
	}
	x.ok(area, "commands of models are confined by %s", text)
}
