/* Preloaded, it stands in front of one function, -DSPY, and refuses every call to it: who is refused came through it.
 */
#define REFUSED 6

int SPY(void);

int SPY(void) {
    return REFUSED;
}
