// Package sarif reads SARIF 2.1.0 as scanners really write it and brings it into one
// shape: results with their rule, level, severity, path and message worked out.
//
// A file that is not SARIF 2.1.0 is refused whole. Within one, whatever cannot be read is
// passed over and counted: one bad result does not cost the others. The package does no
// I/O beyond the reader that it is given.
package sarif
