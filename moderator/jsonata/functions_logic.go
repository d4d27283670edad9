package jsonata

func (c *call) boolean() (any, error) {
	return c.truthy(c.args[0], 1)
}

func (c *call) not() (any, error) {
	holds, err := c.truthy(c.args[0], 1)
	return !holds, err
}

func (c *call) exists() (any, error) { return !c.missing(0), nil }

func (c *call) typeOf() (any, error) {
	return kindName(kindOf(c.args[0])), nil
}

// raise is $error.
func (c *call) raise() (any, error) {
	return nil, c.giveUp(0, "D3137", "$error() was called")
}

func (c *call) assert() (any, error) {
	if holds, _ := c.args[0].(bool); holds || c.missing(0) {
		return undefined{}, nil
	}
	return nil, c.giveUp(1, "D3141", "what $assert() demands does not hold")
}

// giveUp is an error with a message of the expression's own.
func (c *call) giveUp(arg int, code, otherwise string) error {
	if c.missing(arg) {
		return c.fail(code, "%s", otherwise)
	}
	return c.fail(code, "%s", c.textArg(arg))
}
