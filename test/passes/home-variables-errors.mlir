// RUN: not sluice-opt %s "--sluice-home-variables=states=storage device=titan-x" 2>&1 | FileCheck %s --check-prefix=LINK
// RUN: not sluice-opt %s "--sluice-home-variables=parameters=storage device=titan-x" 2>&1 | FileCheck %s --check-prefix=LINK
// RUN: not sluice-opt %s "--sluice-home-variables=states=attic" 2>&1 | FileCheck %s --check-prefix=HOME
// RUN: not sluice-opt %s "--sluice-home-variables=states=host parameters=storage" 2>&1 | FileCheck %s --check-prefix=TWO
// LINK: titan-x: the profile has no 'links.storage'
// HOME: Cannot find option named 'attic'
// TWO: optimizer states are at home in 'host', parameters in 'storage'; give both one home
func.func @step(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  return %x : tensor<64x64xf32>
}
