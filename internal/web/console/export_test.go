package console

// For the tests with a browser, which start a broker and so cannot be of this package.
var (
	Packages    = packages
	Unavailable = unavailable
)
