#include "tools/gpushare/command/rethrow.h"

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/interrupt.h"

namespace gpushare::tool {

namespace {

// What a failure says, as a sentence: the system's own texts have no full stop.
std::string Sentence(const std::exception& error) {
  std::string text = error.what();
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

}  // namespace

void Rethrow(const std::exception_ptr& stopped, const std::string& more) {
  try {
    std::rethrow_exception(stopped);
  } catch (const Interrupted& error) {
    throw Interrupted(error.signal(), error.what() + more);
  } catch (const InputError& error) {
    throw InputError(Sentence(error) + more);
  } catch (const std::exception& error) {
    throw RunError(Sentence(error) + more);
  }
}

}  // namespace gpushare::tool
